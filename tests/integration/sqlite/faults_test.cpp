#include "boyd/queue/settlement.hpp"
#include "boyd/queue/transitions.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <sqlite3.h>

#include <filesystem>
#include <map>

namespace boyd::faults_test {

using namespace boyd;
using namespace boyd::test;

namespace {

class wall_clock final : public clock_port {
 public:
  utc_time now() const override {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  }
  steady_time steady() const override {
    return std::chrono::floor<milliseconds>(std::chrono::steady_clock::now());
  }
};

constexpr std::int64_t mebibyte = 1 << 20;

/// Another process's connection, as the sqlite3 program has it.
class reader {
 public:
  explicit reader(const std::string& path) {
    REQUIRE(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    run("BEGIN");
    run("SELECT count(*) FROM facts");
  }
  ~reader() { sqlite3_close(db_); }
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

 private:
  void run(const char* sql) {
    REQUIRE(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  sqlite3* db_ = nullptr;
};

/// A newer version's statements on a file that nobody has open.
void newer_version(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  const auto status = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  sqlite3_close(db);
  REQUIRE(status == SQLITE_OK);
}

} // namespace

namespace {

/// A queue of one agent, closed and opened by the test.
struct queue_file {
  temp_dir directory;
  adapters::sqlite_options options;
  std::unique_ptr<dispatch_store> s;

  queue_file() {
    options.path = directory.file("boyd.db");
    options.clock = std::make_shared<wall_clock>();
    open();
  }
  void open() {
    s = adapters::make_sqlite_store(options);
    REQUIRE(s->open());
  }
  void enqueue(int count) const {
    std::vector<store::operation> batch;
    for (int i = 0; i < count; ++i) {
      dispatch_spec spec;
      spec.dispatch_id = "dispatch-" + std::to_string(i);
      spec.kernel_id = "k";
      spec.cycle_id = "of " + spec.dispatch_id;
      spec.agent_id = "a";
      batch.emplace_back(store::enqueue_cycle{"k", spec.cycle_id, {spec}, {}});
    }
    REQUIRE(s->apply(batch));
  }
  std::vector<claimed_dispatch> claim(std::size_t limit) const {
    const auto r = s->apply({store::claim{"n1", "k", "a", limit, 1h}});
    REQUIRE(r);
    return std::get<store::claim::reply>(r->front());
  }
  settle_result settle(const claimed_dispatch& c, settle_to to,
                       const run_outcome& outcome = {}) const {
    const auto r =
        s->apply({store::settle{"n1", {{c.row.dispatch_id, c.row.fence, to, 0ms, outcome}}}});
    REQUIRE(r);
    return std::get<store::settle::reply>(r->front()).at(0);
  }
  dispatch find(const std::string& id) const {
    const auto r = s->apply({store::find_dispatch{id}});
    REQUIRE(r);
    return *std::get<store::find_dispatch::reply>(r->front());
  }
};

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("case 26 undecodable-job: what cannot be read is not run but failed with its reason, and "
          "holds nobody up") {
  queue_file q;
  q.enqueue(6);
  // Rows that wait for another attempt have words of an earlier one.
  for (const auto& c : q.claim(4))
    REQUIRE(q.settle(c, c.row.dispatch_id == "dispatch-0" ? settle_to::done : settle_to::retry) ==
            settle_result::accepted);
  q.s.reset();
  newer_version(q.options.path,
                "CREATE TEMP VIEW ids AS SELECT id, dispatch_id FROM dispatch_requests;"
                "UPDATE dispatch_results SET status='archived' WHERE id="
                "(SELECT id FROM ids WHERE dispatch_id='dispatch-0');"
                "UPDATE dispatch_results SET status='suspended' WHERE id="
                "(SELECT id FROM ids WHERE dispatch_id='dispatch-1');"
                "UPDATE dispatch_results SET execution='frozen', failure_class='novel' WHERE id="
                "(SELECT id FROM ids WHERE dispatch_id='dispatch-2');"
                "UPDATE dispatch_results SET attempts='not even JSON' WHERE id="
                "(SELECT id FROM ids WHERE dispatch_id='dispatch-3');"
                "UPDATE dispatch_requests SET metadata='{\"v\":' WHERE dispatch_id='dispatch-4'");
  q.open();
  const auto strange = q.find("dispatch-0");
  REQUIRE(strange.status == dispatch_status::failed);
  REQUIRE(says(strange.outcome.error, "status \"archived\" is unknown"));
  const auto rest = q.claim(10);
  REQUIRE(rest.size() == 5);
  const std::map<std::string, std::vector<std::string>> wanted{
      {"dispatch-1", {"its status \"suspended\" is not known"}},
      {"dispatch-2",
       {"its execution \"frozen\" is not known", "its failure_class \"novel\" is not known"}},
      {"dispatch-3", {"its attempts are not a JSON list"}},
      {"dispatch-4", {"its metadata is not a JSON object"}}};
  for (const auto& c : rest) {
    const auto refusal = queue::refusal_of(c.row);
    INFO(c.row.dispatch_id);
    REQUIRE(refusal.has_value() == wanted.contains(c.row.dispatch_id));
    if (!refusal) {
      REQUIRE(q.settle(c, settle_to::done) == settle_result::accepted);
      continue;
    }
    const auto end = queue::decide_settlement(c, *refusal, {}, 0, queue::stop_cause::none);
    REQUIRE(end.to == settle_to::failed);
    REQUIRE(q.settle(c, end.to, end.outcome) == settle_result::accepted);
    const auto row = q.find(c.row.dispatch_id);
    REQUIRE(row.status == dispatch_status::failed);
    for (const auto& part : wanted.at(c.row.dispatch_id))
      REQUIRE(says(row.outcome.error, part));
  }
  // Not in a loop.
  REQUIRE(q.claim(10).empty());
  tell_figure("case 26: SQLite, " + std::to_string(wanted.size() + 1) + " of " +
              std::to_string(rest.size() + 1) +
              " rows that cannot be read: none run, each reason told, none claimed again");
  // The way back: what this version has written since is whole again, but not the request.
  for (const auto* id : {"dispatch-0", "dispatch-1", "dispatch-2", "dispatch-3", "dispatch-4"})
    REQUIRE(q.s->apply({store::retry_dispatch{id}}));
  for (const auto& c : q.claim(10))
    REQUIRE(queue::refusal_of(c.row).has_value() == (c.row.dispatch_id == "dispatch-4"));
}

TEST_CASE("case 47 wal-grows: a pinned reader is named, the log has a limit, and all comes back") {
  const temp_dir directory;
  const auto path = directory.file("boyd.db");
  adapters::sqlite_options options;
  options.path = path;
  options.clock = std::make_shared<wall_clock>();
  options.wal_concern = mebibyte;
  options.wal_limit = 4 * mebibyte;
  const auto s = adapters::make_sqlite_store(options);
  REQUIRE(s->open());
  const std::string big(std::size_t{256} << 10, 'x');
  int written = 0;
  const auto write = [&] {
    const auto r = s->apply({store::put_fact{"s", "key" + std::to_string(written), big}});
    written += r ? 1 : 0;
    return r;
  };
  const auto wal = [&] {
    return static_cast<std::int64_t>(std::filesystem::file_size(path + "-wal"));
  };
  REQUIRE(write());
  {
    const reader pinned(path);
    while (wal() <= options.wal_concern)
      REQUIRE(write());
    // It works on, and says what is wrong.
    const auto concerns = s->concerns();
    REQUIRE(concerns);
    REQUIRE(concerns->size() == 1);
    REQUIRE(concerns->front().find("another process keeps a transaction open") !=
            std::string::npos);
    auto last = write();
    constexpr int more_than_enough = 100;
    for (int i = 0; last && i < more_than_enough; ++i)
      last = write();
    REQUIRE_FALSE(last);
    REQUIRE(last.error().code == errc::no_space);
    REQUIRE(wal() <= options.wal_limit + mebibyte);
    // It is read as ever.
    const auto facts = s->apply({store::get_facts{"s"}});
    REQUIRE(facts);
    REQUIRE(std::get<store::get_facts::reply>(facts->front()).size() ==
            static_cast<std::size_t>(written));
    REQUIRE(wal() <= options.wal_limit + mebibyte);
    // Opened again, it is refused in the same way: no log without a limit by detours.
    REQUIRE(s->open().error().code == errc::no_space);
  }
  REQUIRE(s->open());
  REQUIRE(s->concerns()->empty());
  REQUIRE(write());
  REQUIRE(wal() <= options.wal_concern);
  const auto facts = s->apply({store::get_facts{"s"}});
  REQUIRE(facts);
  REQUIRE(std::get<store::get_facts::reply>(facts->front()).size() ==
          static_cast<std::size_t>(written));
}

} // namespace boyd::faults_test
