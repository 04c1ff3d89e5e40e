-- What a claim answers with stands in the waiting row itself, where it is small: each body is a
-- member's cycle_id, a line feed, and its prompt. A claim then looks up no requests; rows of an
-- earlier version have no bodies. A row may fill a page before its arrays
-- go to a table of their own. What of an id tells its time orders an agent's dispatches well enough
-- to be indexed (the few of one time are sorted), and equal beginnings share their place: an index
-- entry is a sixth of one with the whole id.
ALTER TABLE dispatch_waiting
  ADD COLUMN max_attempts integer,
  ADD COLUMN metadata jsonb,
  ADD COLUMN bodies text[];
ALTER TABLE dispatch_waiting ALTER COLUMN bodies SET STORAGE EXTERNAL;
ALTER TABLE dispatch_waiting SET (toast_tuple_target = 8160);
ALTER TABLE dispatch_running SET (toast_tuple_target = 8160);
CREATE INDEX dispatch_requests_newest ON dispatch_requests(agent_no, left(dispatch_id, 12));
DROP INDEX dispatch_requests_agent;
