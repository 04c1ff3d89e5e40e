#include "migrations.hpp"

namespace boyd::adapters::sqlite {

namespace {

// Times are milliseconds since 1970 (UTC). Prompts and outputs have tables of their own: a claim or
// a settlement rewrites the dispatch's row, and must not rewrite long texts with it.
constexpr std::string_view tables = R"sql(
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
)sql";

// A row that waits for its not_before has not_before > created_at; a new one has not, and stays out
// of dispatches_delayed.
constexpr std::string_view reading = R"sql(
CREATE INDEX dispatches_agent ON dispatches(kernel_id, agent_id, dispatch_id);
CREATE INDEX dispatches_delayed ON dispatches(not_before)
  WHERE status = 'pending' AND not_before > created_at;
CREATE INDEX dispatches_finished ON dispatches(finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX decisions_newest ON decisions(kernel_id, decided_at);
CREATE INDEX decisions_agent ON decisions(kernel_id, agent_id, decided_at);
CREATE INDEX occurrences_finished ON occurrences(finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX decisions_age ON decisions(decided_at);
)sql";

// Counting a million rows at each status query would stop the queue meanwhile.
constexpr std::string_view counting = R"sql(
CREATE TABLE dispatch_counts(
  kernel_id TEXT NOT NULL,
  status TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(kernel_id, status)
) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_counts SELECT kernel_id, status, count(*) FROM dispatches GROUP BY 1, 2;
CREATE TRIGGER dispatch_counts_insert AFTER INSERT ON dispatches BEGIN
  INSERT INTO dispatch_counts VALUES(new.kernel_id, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER dispatch_counts_delete AFTER DELETE ON dispatches BEGIN
  UPDATE dispatch_counts SET n = n - 1 WHERE kernel_id = old.kernel_id AND status = old.status;
END;
CREATE TRIGGER dispatch_counts_update AFTER UPDATE OF status ON dispatches
WHEN old.status <> new.status BEGIN
  UPDATE dispatch_counts SET n = n - 1 WHERE kernel_id = old.kernel_id AND status = old.status;
  INSERT INTO dispatch_counts VALUES(new.kernel_id, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
)sql";

// Newest first within a kernel, and what has finished in it since. The kernels are the ones of
// dispatch_counts, so that finished rows of all of them need no index of their own.
constexpr std::string_view by_kernel = R"sql(
CREATE INDEX dispatches_newest ON dispatches(kernel_id, dispatch_id);
CREATE INDEX dispatches_ended ON dispatches(kernel_id, finished_at) WHERE finished_at IS NOT NULL;
DROP INDEX dispatches_finished;
)sql";

// A dispatch in four parts, each written once where it can be (ADR 13): what was asked for never
// changes; a row in dispatch_waiting makes it pending, one in dispatch_running makes it running;
// what its latest ended attempt left is in dispatch_results. Kernels, agents and nodes are numbers
// in them. No triggers, foreign keys or checks with IN: each makes every insert open a table or a
// journal of its own, which costs more than the insert.
constexpr std::string_view parts = R"sql(
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
)sql";

// Leases by the numbers of their dispatches, which grow: a claim appends them, and none of them
// has a text to be searched by.
constexpr std::string_view leases_by_number = R"sql(
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
)sql";

// A call of a model is one row, by what was reserved until it is settled; its scopes are a JSON
// list. Totals are what the limits of a day are compared with. Days are texts such as 2026-02-13.
constexpr std::string_view spend = R"sql(
CREATE TABLE spend(
  call_id TEXT PRIMARY KEY,
  day TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  dispatch_id TEXT NOT NULL,
  kernel_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  model TEXT NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost INTEGER NOT NULL, -- millionths of a US dollar
  scopes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_day ON spend(day);
CREATE TABLE spend_totals(
  day TEXT NOT NULL,
  scope TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY(day, scope)
) STRICT, WITHOUT ROWID;
)sql";

// What people are asked, and every attempt to decide or use it. `matter` tells two requests of one
// dispatch apart; `hash` is what a person approves.
constexpr std::string_view approvals = R"sql(
CREATE TABLE approvals(
  approval_id TEXT PRIMARY KEY,
  kernel_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  dispatch_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_sha256 TEXT NOT NULL,
  workspace TEXT NOT NULL,
  before_sha256 TEXT NOT NULL,
  shown TEXT NOT NULL,
  matter TEXT NOT NULL,
  hash TEXT NOT NULL,
  reason TEXT NOT NULL,
  node_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  held INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_at INTEGER,
  decided_by TEXT NOT NULL,
  note TEXT NOT NULL,
  ended_at INTEGER,
  decision_id TEXT NOT NULL,
  use_id TEXT NOT NULL,
  lines INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_open ON approvals(state) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_matter ON approvals(dispatch_id, matter);
CREATE INDEX approvals_newest ON approvals(created_at, approval_id);
CREATE INDEX approvals_ended ON approvals(ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE approval_trail(
  approval_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  what TEXT NOT NULL,
  outcome TEXT NOT NULL,
  by_whom TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY(approval_id, number)
) STRICT, WITHOUT ROWID;
)sql";

// When dispatches ended, by ranges of their numbers: one transaction ends many of them at one time,
// and a row for all of them costs less than an entry for each. A range may hold others as well; it
// leads to the rows, which say when they ended.
constexpr std::string_view ends_by_range = R"sql(
CREATE TABLE dispatch_ends(
  kernel_no INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  PRIMARY KEY(kernel_no, finished_at, first_id)
) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_ends
  SELECT kernel_no, finished_at, id, id FROM dispatch_results WHERE finished_at IS NOT NULL
  ORDER BY 1, 2, 3;
DROP INDEX dispatch_results_ended;
)sql";

// Dispatches that came in together wait in one row, those that were claimed together run in one: by
// ranges of their numbers, which follow each other in the order of their dispatch_ids.
constexpr std::string_view queue_by_range = R"sql(
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
)sql";

// The order in which cycles began: their times have another one when a clock was set back between.
constexpr std::string_view cycles_by_number = R"sql(
ALTER TABLE cycles ADD COLUMN no INTEGER NOT NULL DEFAULT 0;
UPDATE cycles SET no = o.no FROM (SELECT cycle_id, row_number() OVER (ORDER BY started_at, cycle_id)
  AS no FROM cycles) o WHERE o.cycle_id = cycles.cycle_id;
CREATE INDEX cycles_by_number ON cycles(kernel_id, no DESC);
DROP INDEX cycles_newest;
)sql";

// By which a home knows its store again.
constexpr std::string_view store_id = R"sql(
INSERT OR IGNORE INTO facts(scope, key, value) VALUES('store', 'id', lower(hex(randomblob(16))));
)sql";

// What a person says was not used: such a call is neither open nor settled, and may be settled yet.
constexpr std::string_view releases = R"sql(
ALTER TABLE spend ADD COLUMN released_at INTEGER;
ALTER TABLE spend ADD COLUMN released_by TEXT NOT NULL DEFAULT '';
ALTER TABLE spend ADD COLUMN release_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE spend ADD COLUMN released_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spend ADD COLUMN released_cost INTEGER NOT NULL DEFAULT 0;
)sql";

// What cycles of earlier versions owed (edges, commits) becomes effects; what else they could not
// tell is told by those.
constexpr std::string_view effects = R"sql(
INSERT OR IGNORE INTO facts(scope, key, value)
  SELECT 'effects:' || substr(scope, 12),
         printf('%020d', row_number() OVER (PARTITION BY scope ORDER BY key)),
         json_object('kind', 'edges', 'cycle', key, 'edges', json(value))
  FROM facts WHERE scope LIKE 'owed-edges:%' AND json_valid(value);
INSERT OR IGNORE INTO facts(scope, key, value)
  SELECT 'effects:' || substr(f.scope, 6) || '/' || f.key, printf('%020d', 1000001 + e.key),
         json_object('kind', 'history', 'cycle', json_extract(e.value, '$.cycle_id'),
                     'status', json_extract(e.value, '$.status'),
                     'ended', json_extract(e.value, '$.ended'),
                     'behind', 'git committer: its commits failed', 'outcomes', json('[]'))
  FROM facts f, json_each(f.value) e WHERE f.scope LIKE 'owed:%' AND json_valid(f.value);
DELETE FROM facts WHERE scope LIKE 'owed-edges:%' OR scope LIKE 'owed:%' OR scope LIKE 'carried:%';
)sql";

} // namespace

const std::vector<migration>& migrations() {
  static const std::vector<migration> all{{1, "tables", tables},
                                          {2, "indexes for reading", reading},
                                          {3, "counts", counting},
                                          {4, "indexes by kernel", by_kernel},
                                          {5, "dispatches in parts", parts},
                                          {6, "leases by number", leases_by_number},
                                          {7, "spend", spend},
                                          {8, "approvals", approvals},
                                          {9, "ends by range", ends_by_range},
                                          {10, "queue by range", queue_by_range},
                                          {11, "cycles by number", cycles_by_number},
                                          {12, "store id", store_id},
                                          {13, "releases of spend", releases},
                                          {14, "effects", effects}};
  return all;
}

} // namespace boyd::adapters::sqlite
