-- A dispatch in four parts, each written once where it can be (ADR 13): what was asked for never
-- changes; a row in dispatch_waiting makes it pending, one in dispatch_running makes it running;
-- what its latest ended attempt left is in dispatch_results. Kernels, agents and nodes are numbers
-- in them. No triggers, foreign keys or checks with IN: each makes every insert open a table or a
-- journal of its own, which costs more than the insert.
CREATE TABLE kernels(no INTEGER PRIMARY KEY, kernel_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE agents(
  no INTEGER PRIMARY KEY,
  kernel_no INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  UNIQUE(kernel_no, agent_id)
) STRICT;
CREATE TABLE node_names(no INTEGER PRIMARY KEY, node_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE dispatch_requests(
  id INTEGER PRIMARY KEY,
  dispatch_id TEXT NOT NULL UNIQUE,
  agent_no INTEGER NOT NULL,
  cycle_id TEXT NOT NULL,
  priority INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  prompt TEXT NOT NULL,
  UNIQUE(cycle_id, agent_no)
) STRICT;
CREATE TABLE dispatch_waiting(
  agent_no INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  dispatch_id TEXT NOT NULL,
  not_before INTEGER NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY(agent_no, priority DESC, created_at, dispatch_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE dispatch_running(
  dispatch_id TEXT PRIMARY KEY,
  id INTEGER NOT NULL,
  agent_no INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  lease_expires_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  first INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE dispatch_results(
  id INTEGER PRIMARY KEY,
  kernel_no INTEGER NOT NULL,
  status TEXT NOT NULL, -- never 'running'
  attempt INTEGER NOT NULL,
  rescues INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  settled_fence INTEGER NOT NULL,
  not_before INTEGER, -- nothing: as requested
  last_owner_no INTEGER NOT NULL, -- 0: nobody
  started_at INTEGER,
  finished_at INTEGER,
  execution TEXT NOT NULL,
  claim TEXT NOT NULL,
  verification TEXT NOT NULL,
  failure_class TEXT NOT NULL,
  exit_code INTEGER NOT NULL,
  output_cut INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  summary TEXT NOT NULL,
  error TEXT NOT NULL,
  usage TEXT NOT NULL,
  attempts TEXT NOT NULL,
  output TEXT NOT NULL
) STRICT;

INSERT INTO kernels(kernel_id) SELECT DISTINCT kernel_id FROM dispatches ORDER BY 1;
INSERT INTO agents(kernel_no, agent_id)
  SELECT DISTINCT k.no, d.agent_id FROM dispatches d JOIN kernels k USING(kernel_id) ORDER BY 1, 2;
INSERT INTO node_names(node_id) SELECT last_owner FROM dispatches WHERE last_owner <> ''
  UNION SELECT lease_owner FROM dispatches WHERE lease_owner <> '';
INSERT INTO dispatch_requests
  SELECT d.id, d.dispatch_id, a.no, d.cycle_id, d.priority, d.max_attempts, d.created_at,
    d.not_before, d.metadata, coalesce(p.prompt, '')
  FROM dispatches d JOIN kernels k USING(kernel_id)
  JOIN agents a ON a.kernel_no = k.no AND a.agent_id = d.agent_id
  LEFT JOIN dispatch_prompts p ON p.id = d.id ORDER BY d.id;
INSERT INTO dispatch_waiting
  SELECT r.agent_no, d.priority, d.created_at, d.dispatch_id, d.not_before, d.id
  FROM dispatches d JOIN dispatch_requests r ON r.id = d.id WHERE d.status = 'pending';
INSERT INTO dispatch_running
  SELECT d.dispatch_id, d.id, r.agent_no, d.fence, d.attempt, n.no,
    coalesce(d.lease_expires_at, 0), coalesce(d.started_at, d.created_at), 0
  FROM dispatches d JOIN dispatch_requests r ON r.id = d.id
  JOIN node_names n ON n.node_id = d.lease_owner WHERE d.status = 'running';
INSERT INTO dispatch_results
  SELECT d.id, a.kernel_no, CASE d.status WHEN 'running' THEN 'pending' ELSE d.status END,
    d.attempt, d.rescues, d.fence, d.settled_fence, d.not_before, coalesce(n.no, 0), d.started_at, d.finished_at, d.execution, d.claim, d.verification,
    d.failure_class, d.exit_code, d.output_cut, d.session_id, d.summary, d.error, d.usage,
    d.attempts, coalesce(o.output, '')
  FROM dispatches d JOIN dispatch_requests r ON r.id = d.id JOIN agents a ON a.no = r.agent_no
  LEFT JOIN node_names n ON n.node_id = d.last_owner
  LEFT JOIN dispatch_outputs o ON o.id = d.id AND o.fence = d.fence
  WHERE d.status <> 'pending' OR d.fence > 0 OR d.attempts <> '[]' ORDER BY d.id;
CREATE INDEX dispatch_requests_agent ON dispatch_requests(agent_no, dispatch_id);
CREATE INDEX dispatch_waiting_delayed ON dispatch_waiting(not_before)
  WHERE not_before > created_at;
CREATE INDEX dispatch_results_ended ON dispatch_results(kernel_no, finished_at)
  WHERE finished_at IS NOT NULL;

DROP VIEW dispatches_full;
DROP TABLE dispatch_prompts;
DROP TABLE dispatch_outputs;
DROP TABLE dispatches;
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
  LEFT JOIN dispatch_running r ON r.dispatch_id = d.dispatch_id
  LEFT JOIN node_names n ON n.no = r.owner_no
  LEFT JOIN dispatch_results s ON s.id = d.id
  LEFT JOIN dispatch_results o ON o.id = d.id AND r.id IS NULL;
