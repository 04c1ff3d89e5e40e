#include "actors/store/performer.hpp"
#include "actors/store/replies.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/postgres/store.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <libpq-fe.h>

namespace boyd::locked_rows_test {

using namespace boyd;
using namespace boyd::test;

namespace {

using jobs = std::vector<job<store_request, store_reply>>;

std::string query(const std::string& uri, const std::string& sql) {
  return shared_postgres()->query(uri, sql);
}

/// Somebody else's session, which holds its locks until it is told to let go.
class holder {
 public:
  holder(const std::string& uri, const std::string& sql)
      : connection_(PQconnectdb(uri.c_str()), &PQfinish) {
    REQUIRE(PQstatus(connection_.get()) == CONNECTION_OK);
    run("BEGIN");
    run(sql);
  }
  void let_go() { run("COMMIT"); }

 private:
  void run(const std::string& sql) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> r(PQexec(connection_.get(), sql.c_str()),
                                                           &PQclear);
    INFO(PQerrorMessage(connection_.get()));
    const auto status = PQresultStatus(r.get());
    REQUIRE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK));
  }

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

/// The store's worker on a database of its own, where n1 runs d0, d1 and d2.
struct fixture {
  test::temp_dir directory;
  std::string uri = shared_postgres()->make_database();
  std::shared_ptr<clock_port> clock = adapters::make_system_clock();
  store_session session;
  std::vector<claimed_dispatch> running;

  explicit fixture(milliseconds lock_timeout, milliseconds statement_timeout)
      : session(make_store(lock_timeout, statement_timeout), spool(), *clock) {
    for (const std::string agent : {"a0", "a1", "a2"}) {
      dispatch_spec s;
      s.cycle_id = "c";
      s.dispatch_id = "d" + agent.substr(1);
      s.kernel_id = "k";
      s.agent_id = agent;
      REQUIRE(ask(store::enqueue_cycle{"k", "c", {s}, {}}));
      const auto claimed = ask(store::claim{"n1", "k", agent, 1, 1h});
      REQUIRE(claimed);
      running.push_back(std::get<store::claim::reply>(store_replies::of(*claimed).front()).at(0));
    }
  }

  std::unique_ptr<dispatch_store> make_store(milliseconds lock, milliseconds statement) const {
    adapters::postgres_options o;
    o.uri = uri;
    o.application_name = "node";
    o.lock_timeout = lock;
    o.statement_timeout = statement;
    return adapters::make_postgres_store(std::move(o));
  }

  queue::settlement_spool spool() const {
    return {adapters::make_posix_file_system(), directory.file("spool.jsonl")};
  }

  static store_request request(store::operation op) {
    store_request r;
    r.operations.push_back(std::move(op));
    return r;
  }

  result<store_reply> ask(store::operation op) {
    jobs one;
    one.emplace_back(request(std::move(op)));
    session.perform(one);
    return std::move(one.front().reply);
  }

  store_request done(std::size_t i) const {
    const auto& row = running[i].row;
    return request(store::settle{"n1", {{row.dispatch_id, row.fence, settle_to::done, 0ms, {}}}});
  }

  std::string status(const std::string& id) const {
    return query(uri, "SELECT status FROM boyd.dispatches WHERE dispatch_id = '" + id + "'");
  }

  std::string backend() const {
    return query(uri, "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE "
                      "application_name = 'node'");
  }
};

} // namespace

TEST_CASE("a row that somebody has locked is in the way of its own result alone, which is recorded "
          "when it is let go") {
  if (shared_postgres() == nullptr)
    return;
  // The server ends the wait for a lock, or the statement that waits.
  const bool by_lock = GENERATE(true, false);
  fixture f(by_lock ? 200ms : 5s, by_lock ? 5s : 2s);
  const auto backend = f.backend();
  holder other(f.uri, "SELECT 1 FROM boyd.dispatch_running WHERE 'd1' = ANY(members) FOR UPDATE");
  jobs batch;
  for (std::size_t i = 0; i < 3; ++i)
    batch.emplace_back(f.done(i));
  batch.emplace_back(fixture::request(store::put_fact{"here", "key", "value"}));
  batch.emplace_back(fixture::request(store::count_by_status{}));
  batch.emplace_back(fixture::request(store::cancel_dispatch{"d1"}));
  f.session.perform(batch);
  for (std::size_t i = 0; i + 1 < batch.size(); ++i) {
    INFO("request " << i);
    CHECK(batch[i].reply);
  }
  REQUIRE_FALSE(batch.back().reply);
  CHECK(batch.back().reply.error().code == errc::timed_out);
  CHECK(f.status("d0") == "done");
  CHECK(f.status("d1") == "running");
  CHECK(f.status("d2") == "done");
  CHECK(query(f.uri, "SELECT value FROM boyd.facts WHERE scope = 'here'") == "value");
  // It is on the same session, which goes on for everybody else.
  CHECK(f.ask(store::put_fact{"here", "key", "another"}));
  CHECK_THAT(f.session.health().reason, Catch::Matchers::Contains("waiting in the spool"));
  CHECK(f.backend() == backend);
  other.let_go();
  // A sweep that finds the row before its result is recorded does not give it back.
  const auto& row = f.running[1].row;
  CHECK(f.ask(store::settle{"n1", {{row.dispatch_id, row.fence, settle_to::release, 0ms, {}}}}));
  CHECK(wait_until([&] {
    f.session.probe();
    return f.session.health().ok;
  }));
  CHECK(f.status("d1") == "done");
  CHECK(f.backend() == backend);
}

TEST_CASE("a table that somebody has locked leaves the others to work") {
  if (shared_postgres() == nullptr)
    return;
  fixture f(100ms, 5s);
  holder other(f.uri, "LOCK TABLE boyd.dispatch_results IN ACCESS EXCLUSIVE MODE");
  jobs batch;
  for (std::size_t i = 0; i < 3; ++i)
    batch.emplace_back(f.done(i));
  batch.emplace_back(fixture::request(store::put_fact{"here", "key", "value"}));
  batch.emplace_back(fixture::request(store::claim{"n1", "k", "a0", 1, 1h}));
  batch.emplace_back(fixture::request(store::list_pauses{"k"}));
  f.session.perform(batch);
  CHECK(batch[3].reply);
  CHECK(batch[4].reply.error().code == errc::timed_out);
  CHECK(batch[5].reply);
  // A node that is started meanwhile finds its spool, and a store that is open.
  store_session next(f.make_store(100ms, 5s), f.spool(), *f.clock);
  jobs one;
  one.emplace_back(fixture::request(store::list_pauses{"k"}));
  next.perform(one);
  CHECK(one.front().reply);
  CHECK_THAT(next.health().reason, Catch::Matchers::Contains("in the spool: 3"));
  other.let_go();
  CHECK(wait_until([&] {
    next.probe();
    return next.health().ok;
  }));
  for (const auto* id : {"d0", "d1", "d2"})
    CHECK(f.status(id) == "done");
}

TEST_CASE("after a wait that was in vain the next ones are short") {
  if (shared_postgres() == nullptr)
    return;
  // Only a wait that is shorter than before ends before its statement is ended.
  fixture f(1h, 2s);
  holder other(f.uri, "LOCK TABLE boyd.facts IN ACCESS EXCLUSIVE MODE");
  const auto first = f.ask(store::put_fact{"here", "key", "value"});
  REQUIRE_FALSE(first);
  CHECK_THAT(first.error().what, Catch::Matchers::Contains("a statement took too long"));
  const auto second = f.ask(store::put_fact{"here", "key", "value"});
  REQUIRE_FALSE(second);
  CHECK_THAT(second.error().what, Catch::Matchers::Contains("another session held a lock"));
  other.let_go();
  CHECK(f.ask(store::put_fact{"here", "key", "value"}));
}

} // namespace boyd::locked_rows_test
