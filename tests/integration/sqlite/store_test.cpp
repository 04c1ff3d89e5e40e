#include "integration/old_cycles.hpp"
#include "old_schema.hpp"
#include "sqlite_cli.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::store_test {

using namespace boyd;
using namespace boyd::test;
namespace fs = std::filesystem;

namespace {

store::put_fact fact(const std::string& key, const std::string& value) {
  return {"s", key, value};
}

bool put(dispatch_store& s, const std::string& key, const std::string& value = "v") {
  return s.apply({fact(key, value)}).has_value();
}

std::map<std::string, std::string> facts(dispatch_store& s) {
  const auto replies = s.apply({store::get_facts{"s"}});
  REQUIRE(replies);
  return std::get<store::get_facts::reply>(replies->front());
}

store::count_by_status::reply count_of(dispatch_store& s) {
  const auto replies = s.apply({store::count_by_status{}});
  REQUIRE(replies);
  return std::get<store::count_by_status::reply>(replies->front());
}

store::enqueue_cycle one_dispatch(const std::string& id) {
  dispatch_spec s;
  s.dispatch_id = id;
  s.kernel_id = "k";
  s.cycle_id = "c-" + id;
  s.agent_id = "a";
  s.prompt = std::string(3000, 'p');
  return {"k", s.cycle_id, {s}, {}};
}

} // namespace

TEST_CASE("the database is private, in WAL mode, and another program can read it") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  REQUIRE(s->apply({one_dispatch("d1")}));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct ::stat info {};
    REQUIRE(::stat((path + suffix).c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
  }
  REQUIRE(sqlite_cli(path, "SELECT status FROM dispatches") == "pending");
  REQUIRE(sqlite_cli(path, "PRAGMA journal_mode") == "wal");
  REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
  REQUIRE(s->describe().find("schema") != std::string::npos);
}

TEST_CASE("a database that is taken away is reported, never replaced, and works when it is back") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  const auto options = options_for(path);
  auto s = adapters::make_sqlite_store(options);
  REQUIRE(s->open());
  REQUIRE(put(*s, "before"));
  const bool with_log = GENERATE(false, true);
  fs::create_directory(d.file("away"));
  const auto move = [&](const std::string& from, const std::string& to) {
    fs::rename(from + "/boyd.db", to + "/boyd.db");
    for (const char* name : {"/boyd.db-wal", "/boyd.db-shm"})
      if (with_log && fs::exists(from + name))
        fs::rename(from + name, to + name);
  };
  move(d.path(), d.file("away"));
  const auto gone = s->apply({fact("lost", "v")});
  REQUIRE(!gone);
  REQUIRE(gone.error().code == errc::store_unavailable);
  REQUIRE(s->open().error().code == errc::store_unavailable);
  auto another = adapters::make_sqlite_store(options);
  REQUIRE(another->open().error().code == errc::store_unavailable);
  REQUIRE(!fs::exists(path));
  move(d.file("away"), d.path());
  REQUIRE(s->open());
  REQUIRE(put(*s, "after"));
  REQUIRE(facts(*s) == std::map<std::string, std::string>{{"after", "v"}, {"before", "v"}});
  REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("a database file that was exchanged is noticed, and an old log is not played into it") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  REQUIRE(put(*s, "mine"));
  {
    auto other = adapters::make_sqlite_store(options_for(d.file("other.db")));
    REQUIRE(other->open());
    REQUIRE(put(*other, "theirs"));
  }
  fs::rename(path, d.file("kept.db"));
  fs::rename(d.file("other.db"), path);
  REQUIRE(s->apply({fact("x", "y")}).error().code == errc::store_unavailable);
  REQUIRE(s->open().error().code == errc::store_unavailable);
  fs::remove(path + "-wal");
  fs::remove(path + "-shm");
  REQUIRE(s->open());
  REQUIRE(facts(*s) == std::map<std::string, std::string>{{"theirs", "v"}});
}

TEST_CASE("every earlier schema is brought up to date with its rows") {
  for (int version = 1; version <= adapters::sqlite_schema_version(); ++version) {
    temp_dir d;
    const auto path = d.file("boyd.db");
    make_old(path, version);
    REQUIRE(sqlite_cli(path, "INSERT INTO facts VALUES('s', 'k', 'v')").empty());
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
    const auto replies = s->apply({store::count_by_status{}, store::latest_per_agent{"k"}});
    REQUIRE(replies);
    REQUIRE(std::get<store::count_by_status::reply>(replies->at(0)).at(dispatch_status::pending) >=
            1);
    REQUIRE(!std::get<std::vector<dispatch>>(replies->at(1)).empty());
    REQUIRE(facts(*s).at("k") == "v");
    REQUIRE(sqlite_cli(path, "SELECT max(version) FROM schema_migrations") ==
            std::to_string(adapters::sqlite_schema_version()));
  }
}

TEST_CASE("cycles of every earlier schema are numbered in the order of their times") {
  const temp_dir d;
  constexpr int first_with_numbers = 11;
  for (int version = 1; version < first_with_numbers; ++version) {
    const auto path = d.file(std::to_string(version) + ".db");
    make_old(path, version);
    REQUIRE(sqlite_cli(path, old_cycles).empty());
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
    INFO("schema " << version);
    check_old_cycles(*s);
  }
}

TEST_CASE("dispatches of every status are carried over from every earlier schema") {
  for (int version = 1; version <= adapters::sqlite_schema_version(); ++version) {
    temp_dir d;
    const auto path = d.file("boyd.db");
    make_old(path, version);
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
    REQUIRE(count_of(*s) == store::count_by_status::reply{{dispatch_status::pending, 2},
                                                          {dispatch_status::running, 1},
                                                          {dispatch_status::done, 1},
                                                          {dispatch_status::failed, 1}});
    REQUIRE(rows_of(path) == old_rows);
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
    REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
  }
}

TEST_CASE("counts follow every way that a dispatch goes, also after a refused batch") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  REQUIRE(s->apply({one_dispatch("d1"), one_dispatch("d2"), one_dispatch("d3"),
                    store::cancel_dispatch{"d1"}, store::claim{"n", "k", "a", 1, 1h}}));
  REQUIRE(count_of(*s) == store::count_by_status::reply{{dispatch_status::pending, 1},
                                                        {dispatch_status::running, 1},
                                                        {dispatch_status::cancelled, 1}});
  // A batch that fails in its middle is forgotten whole, by the counts in memory, too.
  REQUIRE(sqlite_cli(path, "CREATE TRIGGER stop BEFORE INSERT ON facts BEGIN SELECT "
                           "RAISE(ABORT, 'stop'); END")
              .empty());
  REQUIRE(!s->apply({one_dispatch("d4"), store::cancel_dispatch{"d3"}, fact("x", "y")}));
  REQUIRE(sqlite_cli(path, "DROP TRIGGER stop").empty());
  const auto due = s->apply({store::due_agents{}});
  REQUIRE(std::get<store::due_agents::reply>(due->front()).due.at(0).count == 1);
  REQUIRE(sqlite_cli(path, "SELECT status, n FROM dispatch_counts WHERE n > 0 ORDER BY 1") ==
          "cancelled|1\npending|1\nrunning|1");
  store::remove_finished everything;
  everything.age = -1h;
  REQUIRE(s->apply({everything}));
  REQUIRE(count_of(*s) == store::count_by_status::reply{{dispatch_status::pending, 1},
                                                        {dispatch_status::running, 1}});
}

TEST_CASE("what one connection claimed, the next one renews, settles and takes back") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  {
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
    REQUIRE(s->apply({one_dispatch("d1"), one_dispatch("d2"), store::claim{"n", "k", "a", 2, 1h}}));
  }
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  const settlement done{"d1", 1, settle_to::done, 0ms, {}};
  const auto replies = s->apply({store::renew_leases{"n", {{"d1", 1}, {"d2", 2}}, 1h},
                                 store::settle{"n", {done, done}}, store::take_back{"n", 3, 10},
                                 store::claim{"n2", "k", "", 5, 1h}});
  REQUIRE(replies);
  REQUIRE(std::get<store::renew_leases::reply>(replies->at(0)).lost ==
          std::vector<std::string>{"d2"});
  REQUIRE(std::get<std::vector<settle_result>>(replies->at(1)) ==
          std::vector<settle_result>{settle_result::accepted, settle_result::already_settled});
  REQUIRE(std::get<store::take_back::reply>(replies->at(2)).returned ==
          std::vector<std::string>{"d2"});
  const auto again = std::get<std::vector<claimed_dispatch>>(replies->at(3));
  REQUIRE(again.size() == 1);
  REQUIRE(again[0].row.fence == 2);
  REQUIRE(again[0].row.attempts_json.find("rescue") != std::string::npos);
}

TEST_CASE("a newer schema and a damaged file are refused with advice") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  {
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
  }
  REQUIRE(sqlite_cli(path, "INSERT INTO schema_migrations VALUES(999,'future',0)").empty());
  auto s = adapters::make_sqlite_store(options_for(path));
  const auto opened = s->open();
  REQUIRE(!opened);
  REQUIRE(opened.error().code == errc::invalid_configuration);
  REQUIRE(!opened.error().next.empty());
  const auto damaged = d.file("damaged.db");
  std::ofstream(damaged) << std::string(8192, 'x');
  REQUIRE(adapters::make_sqlite_store(options_for(damaged))->open().error().code == errc::corrupt);
}

TEST_CASE("a full disk refuses the batch, keeps what was there and recovers") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  const pid_t child = ::fork();
  if (child == 0) {
    // A file size limit stands for a full disk: the write fails in the same place.
    auto s = adapters::make_sqlite_store(options_for(path));
    if (!s->open() || !put(*s, "before"))
      ::_exit(1);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1u << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    bool refused = false;
    for (int i = 0; i < 20 && !refused; ++i)
      refused = !put(*s, "big" + std::to_string(i), std::string(200'000, 'b'));
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &none);
    const bool again = put(*s, "after") || (s->open() && put(*s, "after"));
    ::_exit(refused && again ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  const auto kept = facts(*s);
  REQUIRE(kept.contains("before"));
  REQUIRE(kept.contains("after"));
  REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("what was acknowledged is there after kill -9") {
  temp_dir d;
  const auto path = d.file("boyd.db");
  constexpr int kills = 15;
  int acked = 0;
  for (int round = 0; round < kills; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      auto s = adapters::make_sqlite_store(options_for(path));
      if (!s->open())
        ::_exit(1);
      for (int i = acked;; ++i) {
        if (!s->apply({one_dispatch("d" + std::to_string(i)), fact(std::to_string(i), "v")}) ||
            ::write(ends[1], "+", 1) != 1)
          ::_exit(1);
      }
    }
    ::close(ends[1]);
    // The pipe is the outside ledger: one byte per acknowledged batch.
    char byte = 0;
    const int wanted = 1 + round * 3;
    int got = 0;
    while (got < wanted && ::read(ends[0], &byte, 1) == 1)
      ++got;
    ::kill(child, SIGKILL);
    while (::read(ends[0], &byte, 1) == 1)
      ++got;
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    REQUIRE(got >= wanted);
    acked += got;
    auto s = adapters::make_sqlite_store(options_for(path));
    REQUIRE(s->open());
    const auto kept = facts(*s);
    for (int i = 0; i < acked; ++i)
      REQUIRE(kept.contains(std::to_string(i)));
    // At most the batch in flight was committed without being acknowledged; whole or not at all.
    REQUIRE(kept.size() <= static_cast<std::size_t>(acked) + 1);
    store::list_dispatches all;
    all.limit = 100'000;
    const auto rows = s->apply({all});
    REQUIRE(std::get<std::vector<dispatch>>(rows->front()).size() == kept.size());
    acked = static_cast<int>(kept.size());
  }
  REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
}

} // namespace boyd::store_test
