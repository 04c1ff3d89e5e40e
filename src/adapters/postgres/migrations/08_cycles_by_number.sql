-- The order in which cycles began: their times have another one when a clock was set back between,
-- or two nodes' clocks differ. Numbers may be left out.
ALTER TABLE cycles ADD COLUMN no bigint;
UPDATE cycles c SET no = o.no FROM (SELECT cycle_id, row_number() OVER (ORDER BY started_at,
  cycle_id) AS no FROM cycles) o WHERE o.cycle_id = c.cycle_id;
CREATE SEQUENCE cycles_no OWNED BY cycles.no;
SELECT setval('cycles_no', max(no)) FROM cycles HAVING max(no) IS NOT NULL;
ALTER TABLE cycles ALTER COLUMN no SET DEFAULT nextval('cycles_no'), ALTER COLUMN no SET NOT NULL;
CREATE INDEX cycles_by_number ON cycles(kernel_id, no DESC);
DROP INDEX cycles_newest;
