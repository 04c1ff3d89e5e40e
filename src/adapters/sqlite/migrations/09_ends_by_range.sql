-- When dispatches ended, by ranges of their numbers: one transaction ends many of them at one time,
-- and a row for all of them costs less than an entry for each. A range may hold others as well; it
-- leads to the rows, which say when they ended.
CREATE TABLE dispatch_ends(
  kernel_no INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  PRIMARY KEY(kernel_no, finished_at, first_id)
) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_ends
  SELECT kernel_no, finished_at, id, id FROM dispatch_results WHERE finished_at IS NOT NULL
  ORDER BY 1, 2, 3;
DROP INDEX dispatch_results_ended;
