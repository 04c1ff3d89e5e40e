-- Times are milliseconds since 1970 (UTC) by the database's clock. Room is left in each page and
-- lease_expires_at is in no index, so that a renewal stays a heap-only update. Prompts and outputs
-- have tables of their own: a claim must not copy them.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql STABLE
  AS 'SELECT floor(extract(epoch FROM now()) * 1000)::bigint';

CREATE TABLE dispatches(
  dispatch_id text COLLATE "C" PRIMARY KEY,
  kernel_id text COLLATE "C" NOT NULL,
  cycle_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  priority integer NOT NULL,
  status text COLLATE "C" NOT NULL
    CHECK(status IN ('pending','running','done','failed','cancelled')),
  metadata jsonb NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  rescues integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,
  settled_fence bigint NOT NULL DEFAULT 0,
  not_before bigint NOT NULL,
  lease_owner text COLLATE "C" NOT NULL DEFAULT '',
  last_owner text COLLATE "C" NOT NULL DEFAULT '',
  lease_expires_at bigint,
  created_at bigint NOT NULL,
  started_at bigint,
  finished_at bigint,
  execution text NOT NULL DEFAULT 'none',
  claim text NOT NULL DEFAULT 'none',
  verification text NOT NULL DEFAULT 'none',
  failure_class text NOT NULL DEFAULT 'none',
  exit_code integer NOT NULL DEFAULT -1,
  output_cut bigint NOT NULL DEFAULT 0,
  session_id text NOT NULL DEFAULT '',
  summary text NOT NULL DEFAULT '',
  error text NOT NULL DEFAULT '',
  usage text NOT NULL DEFAULT '',
  attempts jsonb NOT NULL DEFAULT '[]',
  UNIQUE(kernel_id, cycle_id, agent_id)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX dispatches_claim
  ON dispatches(kernel_id, agent_id, priority DESC, created_at, dispatch_id)
  INCLUDE (not_before) WHERE status = 'pending';
CREATE INDEX dispatches_running ON dispatches(lease_owner) WHERE status = 'running';

CREATE TABLE dispatch_prompts(
  dispatch_id text COLLATE "C" PRIMARY KEY REFERENCES dispatches ON DELETE CASCADE,
  prompt text NOT NULL
);
CREATE TABLE dispatch_outputs(
  dispatch_id text COLLATE "C" PRIMARY KEY REFERENCES dispatches ON DELETE CASCADE,
  fence bigint NOT NULL,
  output text NOT NULL
);
CREATE VIEW dispatches_full AS
  SELECT d.*, p.prompt, coalesce(o.output, '') AS output FROM dispatches d
  JOIN dispatch_prompts p USING (dispatch_id)
  LEFT JOIN dispatch_outputs o ON o.dispatch_id = d.dispatch_id AND o.fence = d.fence;

CREATE TABLE occurrences(
  kernel_id text COLLATE "C" NOT NULL,
  scheduled_at bigint NOT NULL,
  trigger text NOT NULL,
  state text NOT NULL,
  late boolean NOT NULL,
  reason text NOT NULL,
  cycle_id text COLLATE "C" NOT NULL,
  node_id text NOT NULL,
  created_at bigint NOT NULL,
  finished_at bigint,
  PRIMARY KEY(kernel_id, scheduled_at)
);
CREATE TABLE cycles(
  cycle_id text COLLATE "C" PRIMARY KEY,
  kernel_id text COLLATE "C" NOT NULL,
  scheduled_at bigint NOT NULL,
  status text NOT NULL,
  dispatched integer NOT NULL,
  succeeded integer NOT NULL,
  failed integer NOT NULL,
  failed_agents jsonb NOT NULL,
  agents jsonb NOT NULL,
  duration_ms bigint NOT NULL,
  error text NOT NULL,
  started_at bigint NOT NULL,
  finished_at bigint,
  node_id text NOT NULL
);
CREATE INDEX cycles_newest ON cycles(kernel_id, started_at DESC, cycle_id DESC);
CREATE TABLE decisions(
  kernel_id text COLLATE "C" NOT NULL,
  cycle_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  decided_at bigint NOT NULL,
  dispatched boolean NOT NULL,
  reason text NOT NULL,
  detail text NOT NULL,
  PRIMARY KEY(kernel_id, cycle_id, agent_id)
);
CREATE TABLE pauses(
  kernel_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY(kernel_id, agent_id)
);
CREATE TABLE facts(
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY(scope, key)
);
CREATE TABLE nodes(
  node_id text COLLATE "C" PRIMARY KEY,
  host text NOT NULL,
  pid bigint NOT NULL,
  first_seen bigint NOT NULL,
  last_seen bigint NOT NULL
);
