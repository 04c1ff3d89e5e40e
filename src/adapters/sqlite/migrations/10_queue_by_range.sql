-- Dispatches that came in together wait in one row, those that were claimed together run in one: by
-- ranges of their numbers, which follow each other in the order of their dispatch_ids.
DROP VIEW dispatches;
CREATE TABLE waiting_ranges(
  agent_no INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  first_dispatch_id TEXT NOT NULL,
  not_before INTEGER NOT NULL,
  attempted INTEGER NOT NULL, -- 1: a row in dispatch_results
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  PRIMARY KEY(agent_no, priority DESC, created_at, first_dispatch_id)
) STRICT, WITHOUT ROWID;
INSERT INTO waiting_ranges
  SELECT w.agent_no, w.priority, w.created_at, w.dispatch_id, w.not_before, s.id IS NOT NULL, w.id,
    w.id
  FROM dispatch_waiting w LEFT JOIN dispatch_results s ON s.id = w.id
  ORDER BY w.agent_no, w.priority DESC, w.created_at, w.dispatch_id;
DROP TABLE dispatch_waiting;
ALTER TABLE waiting_ranges RENAME TO dispatch_waiting;
CREATE INDEX dispatch_waiting_delayed ON dispatch_waiting(not_before)
  WHERE not_before > created_at;
CREATE TABLE running_ranges(
  first_id INTEGER PRIMARY KEY,
  last_id INTEGER NOT NULL,
  agent_no INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  lease_expires_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  first INTEGER NOT NULL
) STRICT;
INSERT INTO running_ranges
  SELECT id, id, agent_no, fence, attempt, owner_no, lease_expires_at, started_at, first
  FROM dispatch_running ORDER BY id;
DROP TABLE dispatch_running;
ALTER TABLE running_ranges RENAME TO dispatch_running;
CREATE VIEW dispatches AS
  SELECT d.id, d.dispatch_id, k.kernel_id, d.cycle_id, a.agent_id, d.prompt, d.priority,
    CASE WHEN r.first_id IS NOT NULL THEN 'running' ELSE coalesce(s.status, 'pending') END
      AS status,
    d.metadata, coalesce(r.attempt, s.attempt, 0) AS attempt, d.max_attempts,
    coalesce(s.not_before, d.not_before) AS not_before, coalesce(n.node_id, '') AS lease_owner,
    r.lease_expires_at, coalesce(r.fence, s.fence, 0) AS fence, d.created_at,
    coalesce(r.started_at, s.started_at) AS started_at, s.finished_at,
    coalesce(s.rescues, 0) AS rescues, coalesce(s.attempts, '[]') AS attempts,
    o.execution, o.claim, o.verification, o.failure_class, o.exit_code, o.session_id, o.summary,
    o.error, o.usage, o.output, o.output_cut
  FROM dispatch_requests d JOIN agents a ON a.no = d.agent_no JOIN kernels k ON k.no = a.kernel_no
  LEFT JOIN dispatch_running r ON r.first_id = (SELECT max(q.first_id) FROM dispatch_running q
    WHERE q.first_id <= d.id) AND r.last_id >= d.id
  LEFT JOIN node_names n ON n.no = r.owner_no
  LEFT JOIN dispatch_results s ON s.id = d.id
  LEFT JOIN dispatch_results o ON o.id = d.id AND r.first_id IS NULL;
