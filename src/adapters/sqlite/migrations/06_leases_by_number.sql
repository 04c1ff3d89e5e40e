-- Leases by the numbers of their dispatches, which grow: a claim appends them, and none of them
-- has a text to be searched by.
DROP VIEW dispatches;
ALTER TABLE dispatch_running RENAME TO running_by_text;
CREATE TABLE dispatch_running(
  id INTEGER PRIMARY KEY,
  agent_no INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  lease_expires_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  first INTEGER NOT NULL
) STRICT;
INSERT INTO dispatch_running
  SELECT id, agent_no, fence, attempt, owner_no, lease_expires_at, started_at, first
  FROM running_by_text ORDER BY id;
DROP TABLE running_by_text;
CREATE VIEW dispatches AS
  SELECT d.id, d.dispatch_id, k.kernel_id, d.cycle_id, a.agent_id, d.prompt, d.priority,
    CASE WHEN r.id IS NOT NULL THEN 'running' ELSE coalesce(s.status, 'pending') END AS status,
    d.metadata, coalesce(r.attempt, s.attempt, 0) AS attempt, d.max_attempts,
    coalesce(s.not_before, d.not_before) AS not_before, coalesce(n.node_id, '') AS lease_owner,
    r.lease_expires_at, coalesce(r.fence, s.fence, 0) AS fence, d.created_at,
    coalesce(r.started_at, s.started_at) AS started_at, s.finished_at,
    coalesce(s.rescues, 0) AS rescues, coalesce(s.attempts, '[]') AS attempts,
    o.execution, o.claim, o.verification, o.failure_class, o.exit_code, o.session_id, o.summary,
    o.error, o.usage, o.output, o.output_cut
  FROM dispatch_requests d JOIN agents a ON a.no = d.agent_no JOIN kernels k ON k.no = a.kernel_no
  LEFT JOIN dispatch_running r ON r.id = d.id
  LEFT JOIN node_names n ON n.no = r.owner_no
  LEFT JOIN dispatch_results s ON s.id = d.id
  LEFT JOIN dispatch_results o ON o.id = d.id AND r.id IS NULL;
