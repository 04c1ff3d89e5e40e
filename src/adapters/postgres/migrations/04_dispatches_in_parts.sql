-- A dispatch in parts, each written once (docs/adr/0014): what was asked for never changes; being a
-- member of a row in dispatch_waiting makes it pending, of one in dispatch_running running; what
-- its latest ended attempt left is in dispatch_results. Members are kept in the order of their ids;
-- whoever moves a dispatch holds the lock of the row that it leaves. Texts and verdicts that say
-- nothing are NULL. The tables whose rows come and go are vacuumed early and without pauses.
CREATE TABLE kernels(
  no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kernel_id text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE agents(
  no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kernel_no integer NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  UNIQUE(kernel_no, agent_id)
);
CREATE TABLE dispatch_requests(
  dispatch_id text COLLATE "C" PRIMARY KEY,
  agent_no integer NOT NULL,
  cycle_id text COLLATE "C" NOT NULL,
  priority integer NOT NULL,
  max_attempts integer NOT NULL,
  created_at bigint NOT NULL,
  not_before bigint NOT NULL,
  metadata jsonb,
  prompt text NOT NULL,
  UNIQUE(cycle_id, agent_no)
) WITH (autovacuum_analyze_scale_factor = 0.05);
CREATE TABLE dispatch_waiting(
  agent_no integer NOT NULL,
  priority integer NOT NULL,
  created_at bigint NOT NULL,
  first_id text COLLATE "C" NOT NULL,
  not_before bigint NOT NULL,
  size integer NOT NULL,
  attempted boolean NOT NULL, -- its one member has a row in dispatch_results
  members text[] COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE TABLE dispatch_running(
  claim_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_no integer NOT NULL,
  owner text COLLATE "C" NOT NULL,
  lease_expires_at bigint NOT NULL,
  started_at bigint NOT NULL,
  fence bigint NOT NULL,
  attempt integer NOT NULL,
  attempted boolean NOT NULL,
  members text[] COLLATE "C" NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE TABLE dispatch_results(
  dispatch_id text COLLATE "C" PRIMARY KEY,
  kernel_no integer NOT NULL,
  status text COLLATE "C" NOT NULL, -- never 'running'
  attempt integer NOT NULL,
  rescues integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL,
  settled_fence bigint NOT NULL,
  not_before bigint, -- nothing: as requested
  last_owner text COLLATE "C" NOT NULL,
  started_at bigint,
  finished_at bigint,
  execution text,
  claim text,
  verification text,
  failure_class text,
  exit_code integer NOT NULL,
  output_cut bigint NOT NULL DEFAULT 0,
  session_id text,
  summary text,
  error text,
  usage text,
  attempts jsonb,
  output text
) WITH (autovacuum_analyze_scale_factor = 0.05);
-- Ended dispatches. A slot belongs to few sessions at a time, so that they seldom wait for it.
CREATE TABLE dispatch_counts(
  kernel_no integer NOT NULL,
  status text COLLATE "C" NOT NULL,
  slot integer NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY(kernel_no, status, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
ALTER TABLE dispatch_waiting ALTER COLUMN members SET STORAGE EXTERNAL;
ALTER TABLE dispatch_running ALTER COLUMN members SET STORAGE EXTERNAL;

INSERT INTO kernels(kernel_id) SELECT DISTINCT kernel_id FROM dispatches ORDER BY 1;
INSERT INTO agents(kernel_no, agent_id)
  SELECT DISTINCT k.no, d.agent_id FROM dispatches d JOIN kernels k USING (kernel_id) ORDER BY 1, 2;
INSERT INTO dispatch_requests
  SELECT d.dispatch_id, a.no, d.cycle_id, d.priority, d.max_attempts, d.created_at, d.not_before,
    nullif(d.metadata, '{}'), coalesce(p.prompt, '')
  FROM dispatches d JOIN kernels k USING (kernel_id)
  JOIN agents a ON a.kernel_no = k.no AND a.agent_id = d.agent_id
  LEFT JOIN dispatch_prompts p USING (dispatch_id) ORDER BY d.dispatch_id;
INSERT INTO dispatch_results
  SELECT d.dispatch_id, a.kernel_no, CASE d.status WHEN 'running' THEN 'pending' ELSE d.status END,
    d.attempt, d.rescues, d.fence, d.settled_fence, d.not_before, d.last_owner, d.started_at,
    d.finished_at, nullif(d.execution, 'none'), nullif(d.claim, 'none'),
    nullif(d.verification, 'none'), nullif(d.failure_class, 'none'), d.exit_code, d.output_cut,
    nullif(d.session_id, ''), nullif(d.summary, ''), nullif(d.error, ''), nullif(d.usage, ''),
    nullif(d.attempts, '[]'), nullif(o.output, '')
  FROM dispatches d JOIN dispatch_requests r USING (dispatch_id) JOIN agents a ON a.no = r.agent_no
  LEFT JOIN dispatch_outputs o ON o.dispatch_id = d.dispatch_id AND o.fence = d.fence
  WHERE d.status <> 'pending' OR d.fence > 0 OR d.attempts <> '[]' ORDER BY d.dispatch_id;
INSERT INTO dispatch_waiting
  SELECT r.agent_no, d.priority, d.created_at, d.dispatch_id, d.not_before, 1,
    s.dispatch_id IS NOT NULL, ARRAY[d.dispatch_id]
  FROM dispatches d JOIN dispatch_requests r USING (dispatch_id)
  LEFT JOIN dispatch_results s USING (dispatch_id) WHERE d.status = 'pending';
INSERT INTO dispatch_running(agent_no, owner, lease_expires_at, started_at, fence, attempt,
    attempted, members)
  SELECT r.agent_no, d.lease_owner, coalesce(d.lease_expires_at, 0),
    coalesce(d.started_at, d.created_at), d.fence, d.attempt, true, ARRAY[d.dispatch_id]
  FROM dispatches d JOIN dispatch_requests r USING (dispatch_id) WHERE d.status = 'running';
INSERT INTO dispatch_counts
  SELECT kernel_no, status, 0, count(*) FROM dispatch_results WHERE status <> 'pending'
  GROUP BY 1, 2;
CREATE INDEX dispatch_requests_agent ON dispatch_requests(agent_no, dispatch_id);
CREATE INDEX dispatch_waiting_order
  ON dispatch_waiting(agent_no, priority DESC, created_at, first_id) INCLUDE (not_before, size);
CREATE INDEX dispatch_waiting_delayed ON dispatch_waiting(not_before)
  WHERE not_before > created_at;
CREATE INDEX dispatch_results_ended ON dispatch_results(kernel_no, finished_at)
  WHERE finished_at IS NOT NULL;

DROP VIEW dispatches_full;
DROP TABLE dispatch_prompts;
DROP TABLE dispatch_outputs;
DROP TABLE dispatches;
CREATE VIEW dispatches AS
  SELECT d.dispatch_id, k.kernel_id, d.cycle_id, a.agent_id, d.prompt, d.priority,
    CASE WHEN r.claim_no IS NOT NULL THEN 'running' ELSE coalesce(s.status, 'pending') END AS status,
    coalesce(d.metadata, '{}') AS metadata, coalesce(r.attempt, s.attempt, 0) AS attempt,
    d.max_attempts, coalesce(s.not_before, d.not_before) AS not_before,
    coalesce(r.owner, '') AS lease_owner, r.lease_expires_at, coalesce(r.fence, s.fence, 0) AS fence,
    d.created_at, coalesce(r.started_at, s.started_at) AS started_at, s.finished_at,
    coalesce(s.rescues, 0) AS rescues, coalesce(s.attempts, '[]') AS attempts,
    coalesce(o.execution, 'none') AS execution, coalesce(o.claim, 'none') AS claim,
    coalesce(o.verification, 'none') AS verification,
    coalesce(o.failure_class, 'none') AS failure_class, o.exit_code,
    coalesce(o.session_id, '') AS session_id, coalesce(o.summary, '') AS summary,
    coalesce(o.error, '') AS error, coalesce(o.usage, '') AS usage,
    coalesce(o.output, '') AS output, coalesce(o.output_cut, 0) AS output_cut
  FROM dispatch_requests d JOIN agents a ON a.no = d.agent_no JOIN kernels k ON k.no = a.kernel_no
  LEFT JOIN (SELECT m.id, c.* FROM dispatch_running c, unnest(c.members) AS m(id)) r
    ON r.id = d.dispatch_id
  LEFT JOIN dispatch_results s ON s.dispatch_id = d.dispatch_id
  LEFT JOIN dispatch_results o ON o.dispatch_id = d.dispatch_id AND r.claim_no IS NULL;
