#include "agreement.hpp"
#include "boyd/state/runtime_block.hpp"
#include "harness.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace boyd::taken_away_test {

using namespace boyd::test;
namespace fs = std::filesystem;

namespace {

/// A cycle of two: one is done before the thing is taken away, one ends while it is away.
test_settings two_workers(const std::string& store = "sqlite") {
  test_settings t;
  t.node = "max_concurrent: 4, store: \"" + store + "\"";
  t.agents = {{"early", "say began; say ended; echo early", "priority: 20"},
              {"late", "say began; wait_for go; say ended; echo late", "priority: 10"}};
  return t;
}

test_settings one_quick_worker() {
  test_settings t;
  t.agents = {{"worker", "echo hello", ""}};
  return t;
}

/// A running node with one cycle in mid-air: `early` is done and acknowledged.
class interrupted_cycle {
 public:
  explicit interrupted_cycle(const site& s)
      : s_(s), node_(s.home(), s.log_path()), cycle_((node_.wait_ready(), s.start_cycle())) {
    REQUIRE(eventually([&] {
      return s_.said("began") == 2 &&
             row_of(s_.dispatches(), "agent_id", "early").value("status", "") == "done";
    }));
    early_ = row_of(s_.dispatches(), "agent_id", "early");
    REQUIRE(troubles(s_.status()).empty());
  }

  /// Status says that something is wrong, and what.
  void expect_degraded(const std::string& part) {
    std::vector<std::string> seen;
    const bool said = eventually([&] {
      seen = troubles_now();
      return std::ranges::any_of(
          seen, [&](const std::string& t) { return t.find(part) != std::string::npos; });
    });
    INFO(told(seen) << node_.log());
    CHECK(said);
  }

  /// `late` ends now, whatever is away.
  void finish_late() {
    s_.open_gate("go");
    REQUIRE(eventually([&] { return s_.said("ended") == 2; }));
  }

  void expect_recovery() {
    std::vector<std::string> seen;
    const bool well = eventually([&] {
      seen = troubles_now();
      return seen.empty();
    });
    INFO(told(seen) << node_.log());
    CHECK(well);
  }

  /// The command of the interrupted cycle ends so.
  void expect_end(int code) {
    const auto ended = cycle_.finish();
    INFO(ended.out << ended.err << node_.log());
    CHECK(ended.code == code);
    over_ = true;
  }

  /// The interrupted cycle is recorded, nothing was lost or done twice, a next one is as ever.
  /// `code`: what the command of the interrupted one ends with; 3 when its record had troubles.
  void expect_one_record(int code = 0) {
    if (!over_)
      expect_end(code);
    REQUIRE(node_.running());
    CHECK(row_of(s_.dispatches(), "agent_id", "early") == early_);
    const auto late = row_of(s_.dispatches(), "agent_id", "late");
    CHECK(late.value("status", "") == "done");
    CHECK(late.value("summary", "") == "late");
    CHECK(s_.said("began") == 2);
    const auto next = s_.run({"cycle", "--json"});
    INFO(next.out << next.err << node_.log());
    CHECK(next.code == 0);
    CHECK(s_.dispatches().size() == 4);
    node_.signal(SIGTERM);
    CHECK(node_.wait_end() == 0);
    const auto block = boyd::state::parse_runtime_block(s_.state());
    REQUIRE(block);
    CHECK(block->history.size() == 2);
  }

  std::string cycle_id() const { return early_.at("cycle_id").get<std::string>(); }
  node_process& node() { return node_; }

 private:
  std::vector<std::string> troubles_now() {
    const auto r = s_.run({"status", "--json"});
    const auto status = r.json();
    if (r.code != 0 || !status.is_object() || !status.contains("actors"))
      return {"status: " + r.err + r.out};
    return troubles(status);
  }

  const site& s_;
  node_process node_;
  program cycle_;
  bool over_ = false;
  nlohmann::json early_;
};

/// One `pre-cycle` and behind it one `cycle` commit.
bool two_commits(const site& s, const std::string& cycle_id) {
  std::vector<std::string> own;
  for (const auto& c : commits_of(s))
    if (c.cycle == cycle_id && !c.subject.starts_with("auto: "))
      own.push_back(c.subject);
  return own.size() == 2 && own[0] == "pre-cycle " + cycle_id &&
         own[1].starts_with("cycle " + cycle_id + ": ");
}

void check_agreement(const site& s) {
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
}

} // namespace

TEST_CASE("line 4: the repository is taken away and given back", "[acceptance]") {
  const site s(two_workers());
  interrupted_cycle c(s);
  fs::rename(s.kernel(".git"), s.outside("git"));
  c.finish_late();
  c.expect_degraded("git_committer");
  // Without its history the state goes on.
  CHECK(eventually([&] {
    const auto block = boyd::state::parse_runtime_block(s.state());
    return block && block->latest.cycle_id == c.cycle_id() &&
           name_of(block->latest.status) == "success";
  }));
  REQUIRE_FALSE(fs::exists(s.kernel(".git")));
  // Given back before its end, it might get its commits in time.
  c.expect_end(3);
  fs::rename(s.outside("git"), s.kernel(".git"));
  c.expect_recovery();
  c.expect_one_record();
  // The first cycle's commits could not be made in time, and were made up for.
  check_agreement(s);
  CHECK(two_commits(s, c.cycle_id()));
}

TEST_CASE("line 4: cycles without a repository get their commits when it is back", "[acceptance]") {
  const site s(one_quick_worker());
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(s.run({"cycle"}).code == 0);
  fs::rename(s.kernel(".git"), s.outside("git"));
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i)
    ids.push_back(s.run({"cycle", "--json"}).json().at("cycle_id").get<std::string>());
  fs::rename(s.outside("git"), s.kernel(".git"));
  std::vector<std::string> seen;
  const bool well = eventually([&] {
    seen = troubles(s.status());
    return seen.empty();
  });
  INFO(told(seen) << node.log());
  CHECK(well);
  check_agreement(s); // no cycle came since
  for (const auto& id : ids)
    CHECK(two_commits(s, id));
}

TEST_CASE("line 4: a refused commit is made up for by the next run", "[acceptance]") {
  const site s(one_quick_worker());
  for (int i = 0; i < 8; ++i)
    write_file(s.kernel("note" + std::to_string(i)), "x\n");
  REQUIRE(s.run({"cycle"}).code == 0);
  for (int i = 0; i < 8; ++i)
    fs::remove(s.kernel("note" + std::to_string(i)));
  const auto refused = s.run({"cycle", "--json"});
  INFO(refused.out << refused.err);
  const auto id = refused.json().at("cycle_id").get<std::string>();
  REQUIRE(records_of(s, id) == 0);
  (void)s.git({"checkout", "HEAD", "--", "."});
  const auto next = s.run({"cycle", "--json"});
  INFO(next.out << next.err);
  CHECK(two_commits(s, id));
  CHECK(two_commits(s, next.json().at("cycle_id").get<std::string>()));
  check_agreement(s);
}

TEST_CASE("line 4: a STATE.md that is removed comes back with the agents' part", "[acceptance]") {
  const site s(one_quick_worker());
  REQUIRE(s.run({"cycle"}).code == 0);
  write_file(s.kernel("STATE.md"), s.state() + "\nMY PRECIOUS TEXT\n");
  REQUIRE(s.run({"cycle"}).code == 0);
  const bool backup_too = GENERATE(false, true);
  INFO("its backup, too: " << backup_too);
  fs::remove(s.kernel("STATE.md"));
  if (backup_too)
    fs::remove(s.kernel("STATE.md.bak"));
  const auto r = s.run({"cycle"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.err, Catch::Matchers::Contains("STATE.md was missing and was restored from " +
                                              std::string(backup_too ? "commit " : "its backup")));
  CHECK_THAT(s.state(), Catch::Matchers::Contains("\nMY PRECIOUS TEXT\n"));
  CHECK_THAT(read_file(s.kernel("STATE.md.bak")),
             Catch::Matchers::Contains("\nMY PRECIOUS TEXT\n"));
  check_agreement(s);
}

TEST_CASE("line 4: the state directory is taken away and given back", "[acceptance]") {
  const site s(two_workers());
  interrupted_cycle c(s);
  fs::rename(s.kernel(), s.outside("kernel"));
  c.finish_late();
  c.expect_degraded("state_writer");
  REQUIRE_FALSE(fs::exists(s.kernel()));
  fs::rename(s.outside("kernel"), s.kernel());
  c.expect_recovery();
  c.expect_one_record(3);
  CHECK(s.fsck().empty());
  CHECK(s.git({"status", "--porcelain"}).empty());
}

TEST_CASE("line 4: the database file is taken away and given back", "[acceptance]") {
  const bool with_wal = GENERATE(true, false);
  INFO("with its -wal: " << with_wal);
  const site s(two_workers());
  interrupted_cycle c(s);
  std::vector<std::string> names{"boyd.db"};
  if (with_wal)
    names.insert(names.end(), {"boyd.db-wal", "boyd.db-shm"});
  for (const auto& n : names)
    fs::rename(s.home() + "/" + n, s.outside(n));
  c.finish_late();
  c.expect_degraded("store");
  REQUIRE_FALSE(fs::exists(s.home() + "/boyd.db"));
  for (const auto& n : names)
    if (fs::exists(s.outside(n)))
      fs::rename(s.outside(n), s.home() + "/" + n);
  c.expect_recovery();
  c.expect_one_record();
  check_agreement(s);
}

TEST_CASE("line 4: PostgreSQL is stopped and started", "[acceptance]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const bool crash = GENERATE(false, true);
  INFO("as a crash: " << crash);
  const site s(two_workers(server->make_database()));
  interrupted_cycle c(s);
  crash ? server->stop_immediately() : server->stop();
  c.finish_late();
  c.expect_degraded("store");
  CHECK(s.run({"dispatches", "ls"}).code != 0);
  server->start();
  c.expect_recovery();
  c.expect_one_record();
  check_agreement(s);
}

TEST_CASE("line 4: a busy node loses everything in turn and goes on", "[acceptance]") {
  test_settings t;
  t.kernel = "schedule: \"@every 1s\"; max_cycle_history: 50";
  t.agents = {{"tick", "say began; echo done", ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  const std::vector<std::string> things{"kernel/default/.git", "kernel/default", "boyd.db"};
  for (const auto& thing : things) {
    INFO(thing);
    const auto before = s.said("began");
    REQUIRE(eventually([&] { return s.said("began") > before + 1; }));
    std::vector<std::string> acknowledged;
    for (const auto& row : s.dispatches())
      if (row.at("status") == "done")
        acknowledged.push_back(row.at("dispatch_id").get<std::string>());
    fs::rename(s.home() + "/" + thing, s.outside("away"));
    std::string seen;
    CHECK(eventually([&] {
      const auto status = s.run({"status", "--json"}).json();
      seen = status.is_object() && status.contains("actors") ? told(troubles(status)) : "";
      return !seen.empty();
    }));
    REQUIRE_FALSE(fs::exists(s.home() + "/" + thing));
    fs::rename(s.outside("away"), s.home() + "/" + thing);
    const bool well = eventually([&] {
      const auto status = s.run({"status", "--json"}).json();
      seen = status.is_object() && status.contains("actors") ? told(troubles(status)) : "no status";
      return seen.empty();
    });
    INFO(seen << node.log());
    CHECK(well);
    const auto rows = s.dispatches();
    for (const auto& id : acknowledged)
      CHECK(row_of(rows, "dispatch_id", id).value("status", "") == "done");
  }
  const auto before = s.said("began");
  REQUIRE(eventually([&] { return s.said("began") > before + 1; }));
  node.signal(SIGTERM);
  const int code = node.wait_end();
  INFO(node.log());
  CHECK(code == 0);
  CHECK(s.fsck().empty());
  CHECK(s.git({"status", "--porcelain"}).empty());
}

} // namespace boyd::taken_away_test
