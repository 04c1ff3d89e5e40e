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

} // namespace

const std::vector<migration>& migrations() {
  static const std::vector<migration> all{{1, "tables", tables},
                                          {2, "indexes for reading", reading},
                                          {3, "counts", counting},
                                          {4, "indexes by kernel", by_kernel}};
  return all;
}

} // namespace boyd::adapters::sqlite
