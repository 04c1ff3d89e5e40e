#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <sqlite3.h>

#include <filesystem>

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

TEST_CASE(
    "case 26 undecodable-job: words of a newer version end with a reason, and hold nobody up") {
  const temp_dir directory;
  adapters::sqlite_options options;
  options.path = directory.file("boyd.db");
  options.clock = std::make_shared<wall_clock>();
  auto s = adapters::make_sqlite_store(options);
  REQUIRE(s->open());
  std::vector<store::operation> batch;
  for (const auto* id : {"dispatch-0", "dispatch-1", "dispatch-2"}) {
    dispatch_spec spec;
    spec.dispatch_id = id;
    spec.kernel_id = "k";
    spec.cycle_id = std::string{"of "} + id;
    spec.agent_id = "a";
    batch.emplace_back(store::enqueue_cycle{"k", spec.cycle_id, {spec}, {}});
  }
  REQUIRE(s->apply(batch));
  const auto claim = [&](std::size_t limit) {
    const auto r = s->apply({store::claim{"n1", "k", "a", limit, 1h}});
    REQUIRE(r);
    return std::get<store::claim::reply>(r->front());
  };
  const auto settle = [&](const claimed_dispatch& c) {
    const settlement done{c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, {}};
    const auto r = s->apply({store::settle{"n1", {done}}});
    REQUIRE(r);
    return std::get<store::settle::reply>(r->front()).at(0);
  };
  const auto find = [&](const std::string& id) {
    const auto r = s->apply({store::find_dispatch{id}});
    REQUIRE(r);
    return *std::get<store::find_dispatch::reply>(r->front());
  };
  REQUIRE(settle(claim(1).at(0)) == settle_result::accepted);
  s.reset();
  newer_version(options.path, "UPDATE dispatch_results SET status='archived', execution='frozen', "
                              "failure_class='novel', attempts='not even JSON'; "
                              "UPDATE dispatch_requests SET metadata='{\"v\":'");
  s = adapters::make_sqlite_store(options);
  REQUIRE(s->open());
  const auto strange = find("dispatch-0");
  REQUIRE(strange.status == dispatch_status::failed);
  REQUIRE(strange.outcome.error.find("status \"archived\" is not known") != std::string::npos);
  // Not in a loop: it is not claimed, and those beside it are done.
  const auto rest = claim(10);
  REQUIRE(rest.size() == 2);
  for (const auto& c : rest)
    REQUIRE(settle(c) == settle_result::accepted);
  REQUIRE(claim(10).empty());
  // The way back.
  REQUIRE(s->apply({store::retry_dispatch{"dispatch-0"}}));
  REQUIRE(settle(claim(10).at(0)) == settle_result::accepted);
  REQUIRE(find("dispatch-0").status == dispatch_status::done);
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
