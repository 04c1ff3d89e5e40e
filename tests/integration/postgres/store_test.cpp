#include "integration/old_cycles.hpp"
#include "integration/postgres/fixture.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <pqxx/pqxx>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace boyd::store_test {

using namespace boyd;
using namespace boyd::test;
using test::postgres::opened;
using test::postgres::options_for;

namespace {

store::enqueue_cycle dispatches(int first, int count) {
  store::enqueue_cycle op{"k", "c" + std::to_string(first), {}, {}};
  for (int i = first; i < first + count; ++i) {
    dispatch_spec s;
    s.dispatch_id = "dispatch-" + std::to_string(i);
    s.kernel_id = "k";
    s.cycle_id = op.cycle_id;
    s.agent_id = "a" + std::to_string(i);
    op.specs.push_back(s);
  }
  return op;
}

store::count_by_status::reply count_of(dispatch_store& s) {
  const auto replies = s.apply({store::count_by_status{}});
  REQUIRE(replies);
  return std::get<store::count_by_status::reply>(replies->front());
}

/// One row of each status as the schemas with one table have it: pending p, repeated w, running
/// (for the second time) r, done d, failed f in another kernel.
const char* const old_dispatches = R"sql(
INSERT INTO boyd.dispatches(dispatch_id, kernel_id, cycle_id, agent_id, priority, status, metadata,
  attempt, max_attempts, rescues, fence, settled_fence, not_before, lease_owner, last_owner,
  lease_expires_at, created_at, started_at, finished_at, execution, claim, failure_class, exit_code,
  session_id, summary, error, attempts) VALUES
('dispatch-p','k','c','p',5,'pending','{}',0,3,0,0,0,1000,'','',NULL,1000,NULL,NULL,
  'none','none','none',-1,'','','','[]'),
('dispatch-w','k','c','w',5,'pending','{}',1,3,0,1,1,1500,'','n1',NULL,1000,NULL,NULL,
  'failed','none','transient',1,'','','again','[{"to":"retry"}]'),
('dispatch-r','k','c','r',5,'running','{}',2,3,0,2,1,1200,'n1','n1',9000,1000,1300,NULL,
  'none','none','none',-1,'','','','[{"summary":"first"}]'),
('dispatch-d','k','c','d',5,'done','{"a":1}',1,3,0,1,1,1000,'','n1',NULL,1000,1100,1200,
  'succeeded','done','none',0,'s','good','','[]'),
('dispatch-f','k2','c','f',5,'failed','{}',3,3,0,3,3,1000,'','n1',NULL,1000,1100,1200,
  'failed','none','deterministic',1,'','','bad','[]');
INSERT INTO boyd.dispatch_prompts SELECT dispatch_id, 'work ' || agent_id FROM boyd.dispatches;
INSERT INTO boyd.dispatch_outputs SELECT dispatch_id, fence, 'said ' || agent_id
  FROM boyd.dispatches WHERE agent_id IN ('w', 'd');
)sql";

/// The same rows as the first schema with parts has them.
const char* const old_parts = R"sql(
INSERT INTO boyd.kernels(kernel_id) VALUES ('k'), ('k2');
INSERT INTO boyd.agents(kernel_no, agent_id) VALUES (1,'p'), (1,'w'), (1,'r'), (1,'d'), (2,'f');
INSERT INTO boyd.dispatch_requests SELECT 'dispatch-' || agent_id, no, 'c', 5, 3, 1000, 1000,
  CASE agent_id WHEN 'd' THEN '{"a":1}'::jsonb END, 'work ' || agent_id FROM boyd.agents;
INSERT INTO boyd.dispatch_results(dispatch_id, kernel_no, status, attempt, fence, settled_fence,
  not_before, last_owner, started_at, finished_at, execution, claim, failure_class, exit_code,
  session_id, summary, error, attempts, output) VALUES
('dispatch-w',1,'pending',1,1,1,1500,'n1',NULL,NULL,'failed',NULL,'transient',1,NULL,NULL,'again',
  '[{"to":"retry"}]','said w'),
('dispatch-r',1,'pending',1,1,1,1200,'n1',NULL,NULL,'failed',NULL,'transient',1,NULL,NULL,NULL,
  '[{"summary":"first"}]',NULL),
('dispatch-d',1,'done',1,1,1,NULL,'n1',1100,1200,'succeeded','done',NULL,0,'s','good',NULL,NULL,
  'said d'),
('dispatch-f',2,'failed',3,3,3,NULL,'n1',1100,1200,'failed',NULL,'deterministic',1,NULL,NULL,'bad',
  NULL,NULL);
INSERT INTO boyd.dispatch_waiting VALUES (1,5,1000,'dispatch-p',1000,1,false,'{dispatch-p}'),
  (2,5,1000,'dispatch-w',1500,1,true,'{dispatch-w}');
INSERT INTO boyd.dispatch_running(agent_no, owner, lease_expires_at, started_at, fence, attempt,
  attempted, members) VALUES (3,'n1',9000,1300,2,2,true,'{dispatch-r}');
INSERT INTO boyd.dispatch_counts VALUES (1,'done',0,1), (2,'failed',0,1);
)sql";

/// Ends every other session of the database.
void kill_sessions(const std::string& uri) {
  shared_postgres()->query(uri, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                                "datname = current_database() AND pid <> pg_backend_pid()");
}

bool skipped() {
  return shared_postgres() == nullptr;
}

} // namespace

TEST_CASE("case 19 silent-reconnect: a lost session is reported, not renewed") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(uri);
  REQUIRE(s->apply({dispatches(1, 1)}));
  kill_sessions(uri);
  const auto lost = s->apply({store::list_nodes{}});
  REQUIRE(!lost);
  REQUIRE(lost.error().code == errc::store_unavailable);
  REQUIRE(s->apply({store::list_nodes{}}).error().code == errc::store_unavailable);
  REQUIRE(s->open());
  REQUIRE(s->apply({store::list_nodes{}}));
}

TEST_CASE("case 18 commit-in-doubt: a session that dies in COMMIT is resolved by a repeat") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(uri);
  // A deferred trigger that ends its own session runs inside COMMIT.
  shared_postgres()->query(
      uri, "CREATE FUNCTION boyd.die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM "
           "pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; CREATE CONSTRAINT TRIGGER "
           "die AFTER INSERT ON boyd.dispatch_requests DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
           "EXECUTE "
           "FUNCTION boyd.die()");
  const auto batch = dispatches(1, 1);
  const auto doubt = s->apply({batch});
  REQUIRE(!doubt);
  REQUIRE(doubt.error().code == errc::commit_in_doubt);
  shared_postgres()->query(uri, "DROP TRIGGER die ON boyd.dispatch_requests");
  REQUIRE(s->open());
  REQUIRE(s->apply({batch}));
  const auto again = s->apply({batch});
  REQUIRE(again);
  REQUIRE(std::get<store::enqueue_cycle::reply>(again->front()).inserted == 0);
  REQUIRE(shared_postgres()->query(uri, "SELECT count(*) FROM boyd.dispatches") == "1");
}

TEST_CASE("a server that stops and returns is a pause, not a loss") {
  if (skipped())
    return;
  auto* server = shared_postgres();
  const auto uri = server->make_database();
  auto s = opened(uri);
  REQUIRE(s->apply({dispatches(1, 3)}));
  const auto claimed = s->apply({store::claim{"n1", "k", "", 1, 30s}});
  const bool immediately = GENERATE(false, true);
  if (immediately)
    server->stop_immediately();
  else
    server->stop();
  REQUIRE(s->apply({store::list_nodes{}}).error().code == errc::store_unavailable);
  REQUIRE(s->open().error().code == errc::store_unavailable);
  server->start();
  REQUIRE(s->open());
  const auto& c = std::get<store::claim::reply>(claimed->front()).at(0);
  const settlement done{c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, {}};
  const auto settled = s->apply({store::settle{"n1", {done}}});
  REQUIRE(settled);
  REQUIRE(std::get<store::settle::reply>(settled->front()).at(0) == settle_result::accepted);
}

TEST_CASE("case 22 notify-lost: wake-ups come, and come again after the listener's session died") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(uri);
  event_latch woken;
  auto source =
      adapters::make_postgres_wakeups(options_for(uri), [&](const auto&) { woken.signal(); });
  REQUIRE(woken.wait(1));
  REQUIRE(s->apply({dispatches(1, 2)}));
  s->tidy();
  REQUIRE(woken.wait(2));
  kill_sessions(uri);
  REQUIRE(woken.wait(3));
  REQUIRE(s->open());
  REQUIRE(s->apply({dispatches(10, 2)}));
  s->tidy();
  REQUIRE(woken.wait(4));
}

TEST_CASE("a node is not woken by its own words") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto options = options_for(uri);
  options.speaker = "one";
  const auto speaker = adapters::make_postgres_store(options);
  REQUIRE(speaker->open());
  event_latch own;
  const auto own_source =
      adapters::make_postgres_wakeups(options, [&](const auto&) { own.signal(); });
  event_latch other;
  options.speaker = "another";
  const auto other_source =
      adapters::make_postgres_wakeups(options, [&](const auto&) { other.signal(); });
  // Each once for the beginning.
  REQUIRE(own.wait(1));
  REQUIRE(other.wait(1));
  REQUIRE(speaker->apply({dispatches(1, 2)}));
  speaker->tidy();
  REQUIRE(other.wait(2));
  // Behind it on the same connections: when this has come, the first one would have.
  const auto third = adapters::make_postgres_store(options);
  REQUIRE(third->open());
  REQUIRE(third->apply({dispatches(10, 2)}));
  third->tidy();
  REQUIRE(own.wait(2));
  CHECK(own.count() == 2);
}

namespace {

// The newest libpqxx deprecates the class, and older ones have nothing else.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// Hears what is said on the channel, in the order of the commits. The session outlives it.
class channel_ear final : public pqxx::notification_receiver {
 public:
  explicit channel_ear(pqxx::connection& session)
      : pqxx::notification_receiver(session, "boyd_work") {}

  void operator()(const std::string& payload, int /*pid*/) override { heard_.push_back(payload); }

  /// How many words were said before now.
  std::size_t words() {
    // The own word comes behind those that are committed already.
    pqxx::nontransaction(conn()).exec("NOTIFY boyd_work, 'own'");
    while (heard_.empty() || heard_.back() != "own")
      conn().await_notification();
    heard_.pop_back();
    return heard_.size();
  }

 private:
  std::vector<std::string> heard_;
};
#pragma GCC diagnostic pop

} // namespace

TEST_CASE("nobody is woken for what was claimed with its enqueue") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(uri);
  pqxx::connection session(uri);
  channel_ear ear(session);
  const auto applied = [&](std::vector<store::operation> batch) {
    auto replies = s->apply(batch);
    REQUIRE(replies);
    s->tidy();
    return std::move(*replies);
  };
  const auto all = applied({dispatches(1, 2), store::claim{"n1", "k", "a1", 1, 30s},
                            store::claim{"n1", "k", "a2", 1, 30s}});
  REQUIRE(std::get<store::claim::reply>(all.at(1)).size() == 1);
  REQUIRE(std::get<store::claim::reply>(all.at(2)).size() == 1);
  CHECK(ear.words() == 0);
  applied({dispatches(10, 2), store::claim{"n1", "k", "a10", 1, 30s}});
  CHECK(ear.words() == 1); // one of the two is left for others
  applied({dispatches(20, 1)});
  CHECK(ear.words() == 2);
  // Given back, it is anybody's.
  settlement back;
  back.dispatch_id = "dispatch-1";
  back.fence = std::get<store::claim::reply>(all.at(1)).at(0).row.fence;
  back.to = settle_to::release;
  applied({store::settle{"n1", {back}}});
  CHECK(ear.words() == 3);
}

TEST_CASE("what the server says beside answers is in the log, and nowhere else") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(uri);
  shared_postgres()->query(
      uri, "CREATE FUNCTION boyd.warn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE WARNING "
           "''first line\nsecond of %'', 2; RETURN NULL; END'; CREATE TRIGGER warn AFTER INSERT ON "
           "boyd.facts FOR EACH STATEMENT EXECUTE FUNCTION boyd.warn()");
  std::ostringstream told;
  auto logger = std::make_shared<spdlog::logger>(
      "told", std::make_shared<spdlog::sinks::ostream_sink_st>(told));
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(logger);
  const temp_dir directory;
  const auto path = directory.file("stderr");
  const int kept = ::dup(STDERR_FILENO);
  REQUIRE(std::freopen(path.c_str(), "w", stderr) != nullptr);
  const bool good = s->apply({store::put_fact{"s", "k", "v"}}).has_value();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  spdlog::set_default_logger(before);
  REQUIRE(good);
  REQUIRE(std::filesystem::file_size(path) == 0);
  const auto text = told.str();
  REQUIRE(text.find("[warning] database 127.0.0.1:") != std::string::npos);
  REQUIRE(text.find("WARNING:  first line second of 2") != std::string::npos);
}

TEST_CASE("texts of every kind stand as they were given, whichever way they went to the server") {
  if (skipped())
    return;
  const auto s = opened(shared_postgres()->make_database());
  const std::string hostile = "'; DROP TABLE facts; --\\'' \"\t\r\n\\N $1 \xc3\xbc";
  for (const auto& text :
       {hostile, std::string("\\N"), std::string(100'000, '\''), hostile + "\\"}) {
    REQUIRE(s->apply({store::put_fact{"s", "before", text},
                      store::put_fact{"s", text.substr(0, 40), "key"},
                      store::put_fact{"s", "after", text}}));
    const auto facts = s->apply({store::get_facts{"s"}});
    REQUIRE(facts);
    const auto& all = std::get<store::get_facts::reply>(facts->front());
    CHECK(all.at("before") == text);
    CHECK(all.at(text.substr(0, 40)) == "key");
    CHECK(all.at("after") == text);
  }
  // Few rows and many go different ways, as do short prompts and long ones.
  for (const int count : {1, 4, 5}) {
    auto op = dispatches(count * 10, count);
    for (auto& spec : op.specs)
      spec.prompt = hostile + std::string(static_cast<std::size_t>(count) * 3'000, '\\');
    REQUIRE(s->apply({op}));
    store::list_dispatches asked;
    asked.cycle_id = op.cycle_id;
    asked.with_bodies = true;
    const auto rows = s->apply({asked});
    REQUIRE(rows);
    const auto& found = std::get<std::vector<dispatch>>(rows->front());
    REQUIRE(found.size() == op.specs.size());
    for (const auto& row : found)
      CHECK(row.prompt == op.specs.front().prompt);
  }
}

TEST_CASE("what goes with the commit and is refused leaves nothing, and the session goes on") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  const auto s = opened(uri);
  shared_postgres()->query(uri, "ALTER TABLE boyd.facts ADD CHECK (value <> 'refused')");
  CHECK_FALSE(s->apply({store::put_fact{"s", "a", "1"}, store::put_fact{"s", "b", "refused"}}));
  REQUIRE(s->apply({store::put_fact{"s", "c", "1"}}));
  const auto facts = s->apply({store::get_facts{"s"}});
  REQUIRE(facts);
  CHECK(std::get<store::get_facts::reply>(facts->front()) == store::get_facts::reply{{"c", "1"}});
}

TEST_CASE("a listener without a server stops when it is told to") {
  if (skipped())
    return;
  adapters::postgres_options o = options_for("postgres://boyd@127.0.0.1:1/none");
  const auto source = adapters::make_postgres_wakeups(o, [](const auto&) {});
  REQUIRE(source != nullptr);
}

TEST_CASE("nodes that start together migrate once") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  std::atomic<int> good{0};
  std::vector<std::thread> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.emplace_back([&] {
      auto s = adapters::make_postgres_store(options_for(uri));
      good += s->open() ? 1 : 0;
    });
  for (auto& n : nodes)
    n.join();
  REQUIRE(good == 3);
}

TEST_CASE("migrations that are ended in the middle go on where they were") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  std::vector<std::string> begun;
  constexpr std::size_t allowed = 3;
  {
    auto s = adapters::make_postgres_store(options_for(uri));
    s->tell_migrations([&](const std::string& what) -> result<void> {
      if (begun.size() == allowed)
        return fail(errc::store_unavailable, "the node ends");
      begun.push_back(what);
      return {};
    });
    const auto ended = s->open();
    REQUIRE_FALSE(ended);
    CHECK(ended.error().what == "the node ends");
  }
  auto s = adapters::make_postgres_store(options_for(uri));
  s->tell_migrations([&](const std::string& what) -> result<void> {
    begun.push_back(what);
    return {};
  });
  REQUIRE(s->open());
  CHECK(begun.size() == static_cast<std::size_t>(adapters::postgres_schema_version()));
  CHECK(begun.front() == "schema version 1 (tables)");
  CHECK(begun.back().find("schema version " + std::to_string(adapters::postgres_schema_version()) +
                          " (") == 0);
}

TEST_CASE("an upgrade whose session ends at any step keeps every row of every earlier schema") {
  if (skipped())
    return;
  auto* server = shared_postgres();
  int points = 0;
  const int newest = adapters::postgres_schema_version();
  for (int version = 1; version < newest; ++version)
    for (int step = 0; step < newest - version; ++step) {
      const auto uri = server->make_database();
      auto old = options_for(uri);
      old.migrate_to = version;
      REQUIRE(adapters::make_postgres_store(old)->open());
      constexpr int first_with_parts = 4;
      server->query(uri, version < first_with_parts ? old_dispatches : old_parts);
      {
        auto s = adapters::make_postgres_store(options_for(uri));
        int begun = 0;
        s->tell_migrations([&](const std::string&) -> result<void> {
          if (begun++ == step)
            server->query(uri, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                               "datname = current_database() AND pid <> pg_backend_pid()");
          return {};
        });
        INFO("schema " << version << ", step " << step);
        // A session that is lost may be made anew by the store, or the next start does it.
        [[maybe_unused]] const auto opened_in_spite = s->open();
        CHECK(begun > step);
      }
      auto s = opened(uri);
      REQUIRE(promised(count_of(*s) == store::count_by_status::reply{{dispatch_status::pending, 2},
                                                                     {dispatch_status::running, 1},
                                                                     {dispatch_status::done, 1},
                                                                     {dispatch_status::failed, 1}},
                       "a migration that was cut short has lost rows"));
      ++points;
    }
  tell_figure("case 44: upgrades of PostgreSQL cut short at " + std::to_string(points) +
              " steps: 0 rows lost");
}

TEST_CASE("cycles of every earlier schema are numbered in the order of their times") {
  if (skipped())
    return;
  constexpr int first_with_numbers = 8;
  for (int version = 1; version < first_with_numbers; ++version) {
    const auto uri = shared_postgres()->make_database();
    auto old = options_for(uri);
    old.migrate_to = version;
    REQUIRE(adapters::make_postgres_store(old)->open());
    shared_postgres()->query(uri, std::string{"SET search_path = boyd; "} + old_cycles);
    INFO("schema " << version);
    check_old_cycles(*opened(uri));
  }
}

TEST_CASE("dispatches of every status are carried over from every earlier schema") {
  if (skipped())
    return;
  auto* server = shared_postgres();
  for (int version = 1; version < adapters::postgres_schema_version(); ++version) {
    const auto uri = server->make_database();
    auto old = options_for(uri);
    old.migrate_to = version;
    REQUIRE(adapters::make_postgres_store(old)->open());
    constexpr int first_with_parts = 4;
    server->query(uri, version < first_with_parts ? old_dispatches : old_parts);
    auto s = opened(uri);
    REQUIRE(count_of(*s) == store::count_by_status::reply{{dispatch_status::pending, 2},
                                                          {dispatch_status::running, 1},
                                                          {dispatch_status::done, 1},
                                                          {dispatch_status::failed, 1}});
    REQUIRE(server->query(uri, "SELECT dispatch_id, kernel_id, agent_id, status, attempt, fence, "
                               "lease_owner, prompt, output FROM boyd.dispatches ORDER BY 1") ==
            "dispatch-d|k|d|done|1|1||work d|said d\n"
            "dispatch-f|k2|f|failed|3|3||work f|\n"
            "dispatch-p|k|p|pending|0|0||work p|\n"
            "dispatch-r|k|r|running|2|2|n1|work r|\n"
            "dispatch-w|k|w|pending|1|1||work w|said w");
    // The running attempt ends under its fence; the repeated one keeps its history.
    settlement end{"dispatch-r", 2, settle_to::done, 0ms, {}};
    end.outcome.summary = "through";
    const auto replies =
        s->apply({store::settle{"n1", {end}}, store::find_dispatch{"dispatch-r"},
                  store::claim{"n1", "k", "w", 5, 1h}, store::claim{"n1", "k", "p", 5, 1h}});
    REQUIRE(replies);
    REQUIRE(std::get<std::vector<settle_result>>(replies->at(0)).at(0) == settle_result::accepted);
    const auto ended = *std::get<std::optional<dispatch>>(replies->at(1));
    REQUIRE(ended.status == dispatch_status::done);
    REQUIRE(ended.outcome.summary == "through");
    REQUIRE(ended.attempts_json.find("first") != std::string::npos);
    const auto again = std::get<std::vector<claimed_dispatch>>(replies->at(2)).at(0).row;
    REQUIRE(again.attempt == 2);
    REQUIRE(again.fence == 2);
    REQUIRE(std::get<std::vector<claimed_dispatch>>(replies->at(3)).at(0).row.prompt == "work p");
  }
}

TEST_CASE("a newer schema is refused and no password is shown") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  opened(uri);
  shared_postgres()->query(uri,
                           "INSERT INTO boyd.schema_migrations(version, name) VALUES(999,'x')");
  auto o = options_for(uri);
  o.password = "hidden-word";
  auto s = adapters::make_postgres_store(o);
  const auto refused = s->open();
  REQUIRE(!refused);
  REQUIRE(refused.error().code == errc::invalid_configuration);
  REQUIRE(to_string(refused.error()).find("hidden-word") == std::string::npos);
  REQUIRE(s->describe().find("hidden-word") == std::string::npos);
}

} // namespace boyd::store_test
