-- Times are milliseconds since 1970 (UTC). Prompts and outputs have tables of their own: a claim or
-- a settlement rewrites the dispatch's row, and must not rewrite long texts with it.
CREATE TABLE dispatches(
  id INTEGER PRIMARY KEY,
  dispatch_id TEXT NOT NULL UNIQUE,
  kernel_id TEXT NOT NULL,
  cycle_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  priority INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending','running','done','failed','cancelled')),
  metadata TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  rescues INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  settled_fence INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  lease_owner TEXT NOT NULL,
  last_owner TEXT NOT NULL,
  lease_expires_at INTEGER,
  created_at INTEGER NOT NULL,
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
  UNIQUE(kernel_id, cycle_id, agent_id)
) STRICT;
CREATE INDEX dispatches_claim
  ON dispatches(kernel_id, agent_id, priority DESC, created_at, dispatch_id, not_before)
  WHERE status = 'pending';
CREATE INDEX dispatches_lease ON dispatches(lease_expires_at) WHERE status = 'running';

CREATE TABLE dispatch_prompts(
  id INTEGER PRIMARY KEY REFERENCES dispatches(id) ON DELETE CASCADE,
  prompt TEXT NOT NULL
) STRICT;
CREATE TABLE dispatch_outputs(
  id INTEGER PRIMARY KEY REFERENCES dispatches(id) ON DELETE CASCADE,
  fence INTEGER NOT NULL,
  output TEXT NOT NULL
) STRICT;
CREATE VIEW dispatches_full AS
  SELECT d.*, p.prompt, coalesce(o.output, '') AS output FROM dispatches d
  JOIN dispatch_prompts p ON p.id = d.id
  LEFT JOIN dispatch_outputs o ON o.id = d.id AND o.fence = d.fence;

CREATE TABLE occurrences(
  kernel_id TEXT NOT NULL,
  scheduled_at INTEGER NOT NULL,
  trigger TEXT NOT NULL,
  state TEXT NOT NULL,
  late INTEGER NOT NULL,
  reason TEXT NOT NULL,
  cycle_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY(kernel_id, scheduled_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE cycles(
  cycle_id TEXT PRIMARY KEY,
  kernel_id TEXT NOT NULL,
  scheduled_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  dispatched INTEGER NOT NULL,
  succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  failed_agents TEXT NOT NULL,
  agents TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  error TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  node_id TEXT NOT NULL
) STRICT;
CREATE INDEX cycles_newest ON cycles(kernel_id, started_at DESC, cycle_id DESC);

CREATE TABLE decisions(
  kernel_id TEXT NOT NULL,
  cycle_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  dispatched INTEGER NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY(kernel_id, cycle_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses(
  kernel_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY(kernel_id, agent_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE facts(
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY(scope, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE nodes(
  node_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
