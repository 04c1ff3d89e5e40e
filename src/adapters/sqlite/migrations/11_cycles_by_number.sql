-- The order in which cycles began: their times have another one when a clock was set back between.
ALTER TABLE cycles ADD COLUMN no INTEGER NOT NULL DEFAULT 0;
UPDATE cycles SET no = o.no FROM (SELECT cycle_id, row_number() OVER (ORDER BY started_at, cycle_id)
  AS no FROM cycles) o WHERE o.cycle_id = cycles.cycle_id;
CREATE INDEX cycles_by_number ON cycles(kernel_id, no DESC);
DROP INDEX cycles_newest;
