#include "migrations.hpp"

namespace boyd::adapters::postgres {

namespace {

// Times are milliseconds since 1970 (UTC) by the database's clock. Room is left in each page and
// lease_expires_at is in no index, so that a renewal stays a heap-only update. Prompts and outputs
// have tables of their own: a claim must not copy them.
constexpr std::string_view tables = R"sql(
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
)sql";

// A row that waits for its not_before has not_before > created_at; a new one has not, and stays out
// of dispatches_delayed. dispatches_finished also answers the count by status from the index alone.
constexpr std::string_view reading = R"sql(
CREATE INDEX dispatches_agent ON dispatches(kernel_id, agent_id, dispatch_id);
CREATE INDEX dispatches_delayed ON dispatches(not_before)
  WHERE status = 'pending' AND not_before > created_at;
CREATE INDEX dispatches_finished ON dispatches(finished_at) INCLUDE (kernel_id, status)
  WHERE finished_at IS NOT NULL;
CREATE INDEX decisions_newest ON decisions(kernel_id, decided_at);
CREATE INDEX decisions_agent ON decisions(kernel_id, agent_id, decided_at);
CREATE INDEX decisions_age ON decisions(decided_at);
CREATE INDEX occurrences_finished ON occurrences(finished_at) WHERE finished_at IS NOT NULL;
)sql";

// Newest first within a kernel, and what has finished in it since. dispatches_ended takes over all
// duties of dispatches_finished: an update that changes the status writes to every index.
constexpr std::string_view by_kernel = R"sql(
CREATE INDEX dispatches_newest ON dispatches(kernel_id, dispatch_id);
CREATE INDEX dispatches_ended ON dispatches(kernel_id, finished_at) INCLUDE (status)
  WHERE finished_at IS NOT NULL;
DROP INDEX dispatches_finished;
)sql";

// A dispatch in parts, each written once (docs/adr/0014): what was asked for never changes; being a
// member of a row in dispatch_waiting makes it pending, of one in dispatch_running running; what
// its latest ended attempt left is in dispatch_results. Members are kept in the order of their ids;
// whoever moves a dispatch holds the lock of the row that it leaves. Texts and verdicts that say
// nothing are NULL. The tables whose rows come and go are vacuumed early and without pauses.
constexpr std::string_view parts = R"sql(
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
)sql";

// What a claim answers with stands in the waiting row itself, where it is small: each body is a
// member's cycle_id, a line feed, and its prompt. A claim then looks up no requests; rows of an
// earlier version have no bodies. A row may fill a page before its arrays
// go to a table of their own. What of an id tells its time orders an agent's dispatches well enough
// to be indexed (the few of one time are sorted), and equal beginnings share their place: an index
// entry is a sixth of one with the whole id.
constexpr std::string_view bodies = R"sql(
ALTER TABLE dispatch_waiting
  ADD COLUMN max_attempts integer,
  ADD COLUMN metadata jsonb,
  ADD COLUMN bodies text[];
ALTER TABLE dispatch_waiting ALTER COLUMN bodies SET STORAGE EXTERNAL;
ALTER TABLE dispatch_waiting SET (toast_tuple_target = 8160);
ALTER TABLE dispatch_running SET (toast_tuple_target = 8160);
CREATE INDEX dispatch_requests_newest ON dispatch_requests(agent_no, left(dispatch_id, 12));
DROP INDEX dispatch_requests_agent;
)sql";

// A call of a model is one row, by what was reserved until it is settled. Totals are what the
// limits of a day are compared with: the lock of its row is what makes check and taking one. They
// are updated often and stay few.
constexpr std::string_view spend = R"sql(
CREATE TABLE spend(
  call_id text COLLATE "C" PRIMARY KEY,
  day text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  settled_at bigint,
  dispatch_id text COLLATE "C" NOT NULL,
  kernel_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  provider_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  input bigint NOT NULL,
  cached bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  cost bigint NOT NULL, -- millionths of a US dollar
  scopes text[] COLLATE "C" NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX spend_day ON spend(day);
CREATE TABLE spend_totals(
  day text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  PRIMARY KEY(day, scope)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
)sql";

// What people are asked, and every attempt to decide or use it. `matter` tells two requests of one
// dispatch apart; `hash` is what a person approves.
constexpr std::string_view approvals = R"sql(
CREATE TABLE approvals(
  approval_id text COLLATE "C" PRIMARY KEY,
  kernel_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  dispatch_id text COLLATE "C" NOT NULL,
  tool text NOT NULL,
  arguments_sha256 text NOT NULL,
  workspace text NOT NULL,
  before_sha256 text NOT NULL,
  shown text NOT NULL,
  matter text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  held integer NOT NULL,
  state text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  decided_at bigint,
  decided_by text NOT NULL DEFAULT '',
  note text NOT NULL DEFAULT '',
  ended_at bigint,
  decision_id text NOT NULL DEFAULT '',
  use_id text NOT NULL DEFAULT '',
  lines bigint NOT NULL
);
CREATE INDEX approvals_open ON approvals(state) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_matter ON approvals(dispatch_id, matter);
CREATE INDEX approvals_newest ON approvals(created_at, approval_id);
CREATE INDEX approvals_ended ON approvals(ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE approval_trail(
  approval_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  what text NOT NULL,
  outcome text NOT NULL,
  by_whom text NOT NULL,
  detail text NOT NULL,
  PRIMARY KEY(approval_id, number)
);
)sql";

// The order in which cycles began: their times have another one when a clock was set back between,
// or two nodes' clocks differ. Numbers may be left out.
constexpr std::string_view cycles_by_number = R"sql(
ALTER TABLE cycles ADD COLUMN no bigint;
UPDATE cycles c SET no = o.no FROM (SELECT cycle_id, row_number() OVER (ORDER BY started_at,
  cycle_id) AS no FROM cycles) o WHERE o.cycle_id = c.cycle_id;
CREATE SEQUENCE cycles_no OWNED BY cycles.no;
SELECT setval('cycles_no', max(no)) FROM cycles HAVING max(no) IS NOT NULL;
ALTER TABLE cycles ALTER COLUMN no SET DEFAULT nextval('cycles_no'), ALTER COLUMN no SET NOT NULL;
CREATE INDEX cycles_by_number ON cycles(kernel_id, no DESC);
DROP INDEX cycles_newest;
)sql";

// By which a home knows its store again.
constexpr std::string_view store_id = R"sql(
INSERT INTO facts(scope, key, value) VALUES('store', 'id', gen_random_uuid()::text)
  ON CONFLICT (scope, key) DO NOTHING;
)sql";

// What a person says was not used: such a call is neither open nor settled, and may be settled yet.
constexpr std::string_view releases = R"sql(
ALTER TABLE spend ADD COLUMN released_at bigint, ADD COLUMN released_by text NOT NULL DEFAULT '',
  ADD COLUMN release_reason text NOT NULL DEFAULT '',
  ADD COLUMN released_tokens bigint NOT NULL DEFAULT 0,
  ADD COLUMN released_cost bigint NOT NULL DEFAULT 0;
)sql";

// What cycles of earlier versions owed (edges, commits) becomes effects; what else they could not
// tell is told by those.
constexpr std::string_view effects = R"sql(
INSERT INTO facts(scope, key, value)
  SELECT 'effects:' || substr(scope, 12),
         lpad((row_number() OVER (PARTITION BY scope ORDER BY key))::text, 20, '0'),
         json_build_object('kind', 'edges', 'cycle', key, 'edges', value::json)::text
  FROM facts WHERE scope LIKE 'owed-edges:%' ON CONFLICT (scope, key) DO NOTHING;
INSERT INTO facts(scope, key, value)
  SELECT 'effects:' || substr(f.scope, 6) || '/' || f.key, lpad((1000000 + e.n)::text, 20, '0'),
         json_build_object('kind', 'history', 'cycle', e.v->>'cycle_id', 'status', e.v->>'status',
                           'ended', (e.v->>'ended')::bigint, 'behind',
                           'git committer: its commits failed', 'outcomes', '[]'::json)::text
  FROM facts f, json_array_elements(f.value::json) WITH ORDINALITY e(v, n)
  WHERE f.scope LIKE 'owed:%' ON CONFLICT (scope, key) DO NOTHING;
DELETE FROM facts WHERE scope LIKE 'owed-edges:%' OR scope LIKE 'owed:%' OR scope LIKE 'carried:%';
)sql";

} // namespace

const std::vector<migration>& migrations() {
  static const std::vector<migration> all{{1, "tables", tables},
                                          {2, "indexes for reading", reading},
                                          {3, "indexes by kernel", by_kernel},
                                          {4, "dispatches in parts", parts},
                                          {5, "bodies in waiting rows", bodies},
                                          {6, "spend", spend},
                                          {7, "approvals", approvals},
                                          {8, "cycles by number", cycles_by_number},
                                          {9, "store id", store_id},
                                          {10, "releases of spend", releases},
                                          {11, "effects", effects}};
  return all;
}

} // namespace boyd::adapters::postgres
