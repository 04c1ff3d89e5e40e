#include "agreement.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"
#include "harness.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <random>
#include <set>

namespace boyd::kill_test {

using namespace boyd::test;
using nlohmann::json;

namespace {

const std::string agents_text = "\n## plans\n| a | table |\n|---|---|\nkeep me  \n";

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

std::map<std::string, json> by_agent(const site& s) {
  std::map<std::string, json> rows;
  for (const auto& row : s.dispatches())
    rows[row.at("agent_id").get<std::string>()] = row;
  return rows;
}

bool all_final(const site& s) {
  const auto queue = s.status().at("queue");
  return queue.at("pending") == 0 && queue.at("running") == 0;
}

/// Every attempt of a row under its own fence, and one end.
std::vector<std::string> double_settlements(const site& s) {
  std::vector<std::string> out;
  for (const auto& row : s.dispatches()) {
    std::set<std::string> fences;
    int good = 0;
    for (const auto& a : row.at("attempts")) {
      if (!fences.insert(a.at("fence").dump()).second)
        out.push_back("fence twice: " + row.dump());
      good += a.value("to", "") == "done" ? 1 : 0;
    }
    if (good > 1)
      out.push_back("done twice: " + row.dump());
  }
  for (const auto& what : out)
    tell_broken(what);
  return out;
}

} // namespace

TEST_CASE("line 3: kill -9 in mid-cycle loses nothing, and the work runs again at once",
          "[acceptance]") {
  test_settings t;
  const std::string wait = "say began; [ -e @SITE@/go ] || sleep 600; say ended; echo done";
  t.agents = {
      {"quick", "say began; say ended; echo done", "priority: 50"},
      {"sleeper-a", wait, "priority: 20"},
      {"sleeper-b", wait, "priority: 20"},
      {"family",
       "say began; [ -e @SITE@/go ] || { setsid sh -c '. @SITE@/orphan.sh'; sleep 600; }; say "
       "ended",
       "priority: 20"},
  };
  const site s(t);
  // A grandchild in a session of its own, whose parent ends at once.
  write_file(s.outside("orphan.sh"),
             "( printf '. . . orphan %s\\n' \"$(exec sh -c 'echo $PPID')\" >> " +
                 s.outside("ledger") + "; exec sleep 600 ) &\n");
  append(s.kernel("STATE.md"), agents_text);
  const auto text_before = boyd::state::agents_part(s.state());

  std::map<std::string, json> before;
  {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    auto cycle = s.start_cycle();
    REQUIRE(eventually([&] {
      return s.said("began") == 4 && s.said("orphan") == 1 &&
             by_agent(s)["quick"]["status"] == "done";
    }));
    before = by_agent(s);
    for (const auto& l : s.ledger())
      CHECK((alive(l.pid) || l.agent == "quick"));
    node.signal(SIGKILL);
    CHECK(node.wait_end() == 128 + SIGKILL);
    CHECK(cycle.finish().code != 0);
  }
  for (const auto& l : s.ledger()) {
    INFO(l.agent << " " << l.word << " " << l.pid);
    CHECK(eventually([&] { return !alive(l.pid); }));
  }
  CHECK(boyd::state::agents_part(s.state()) == text_before);

  s.open_gate("go");
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] { return all_final(s); }));
  const auto after = by_agent(s);
  const auto id = after.at("quick").at("cycle_id").get<std::string>();
  REQUIRE(eventually([&] { return records_of(s, id) > 0; }));
  for (const auto& name : {"sleeper-a", "sleeper-b", "family"}) {
    const auto& row = after.at(name);
    INFO(row.dump());
    CHECK(row.at("status") == "done");
    CHECK(row.at("dispatch_id") == before.at(name).at("dispatch_id"));
    CHECK(row.at("rescues") == 1);
    CHECK(row.at("attempt") == 1);
    CHECK(row.at("fence").get<int>() > before.at(name).at("fence").get<int>());
    // At once: the lease of the killed node had not run out yet.
    CHECK(row.at("started_at").get<std::string>() <
          before.at(name).at("lease_expires_at").get<std::string>());
  }
  CHECK(after.at("quick") == before.at("quick"));
  CHECK(s.said("began") == 7);
  CHECK(double_settlements(s).empty());
  CHECK(records_of(s, id) == 1);

  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
  CHECK(s.state().find(agents_text) != std::string::npos);
  const auto block = boyd::state::parse_runtime_block(s.state());
  REQUIRE(block);
  CHECK(block->history.size() == 1);
  CHECK(name_of(block->latest.status) == "success");
}

namespace {

/// What changes on disk while cycles run; a kill point is the n-th change of one of them.
struct watched {
  const site& s;

  std::string look(int what) const {
    switch (what) {
    case 0:
      return read_file(s.outside("ledger"));
    case 1:
      return s.state();
    case 2:
      return read_file(s.kernel(".git/refs/heads/master")) +
             read_file(s.kernel(".git/refs/heads/main"));
    case 3:
      return read_file(s.home() + "/knowledge/graph.jsonl");
    default:
      return std::to_string(s.said("began")) + read_file(s.kernel("STATE.md.bak"));
    }
  }
};

} // namespace

TEST_CASE("line 3: killed again and again at points of quick cycles, the home stays sound",
          "[acceptance]") {
  constexpr int rounds = 10;
  constexpr int kinds = 5;
  test_settings t;
  // A cycle that the next slot ends on a slow machine is rightly recorded without its last results.
  t.kernel = "schedule: \"@every 1s\"; cycle_deadline: 10m; max_cycle_history: 50";
  for (const auto& id : {"one", "two", "three", "four"})
    t.agents.push_back({id, "say began; echo done", ""});
  const site s(t);
  append(s.kernel("STATE.md"), agents_text);
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::map<std::string, json> done;

  for (int round = 0; round < rounds; ++round) {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    const watched disk{s};
    const int what = round % kinds;
    const int changes = std::uniform_int_distribution<int>(1, 4)(random);
    INFO("round " << round << ", after " << changes << " changes of kind " << what);
    for (int i = 0; i < changes; ++i) {
      const auto was = disk.look(what);
      REQUIRE(boyd::test::eventually([&] { return disk.look(what) != was; }));
    }
    node.signal(SIGKILL);
    node.wait_end();
    CHECK(s.state().find(agents_text) != std::string::npos);
    const auto fsck = s.fsck();
    INFO(fsck);
    CHECK(fsck.empty());
    // What was acknowledged once stays as it was.
    for (const auto& row : s.dispatches()) {
      const auto id = row.at("dispatch_id").get<std::string>();
      if (const auto it = done.find(id); it != done.end())
        CHECK(row == it->second);
      if (row.at("status") == "done")
        done[id] = row;
    }
  }
  CHECK_FALSE(done.empty());

  t.kernel = "schedule: \"0 0 1 1 *\"; cycle_deadline: 10m; max_cycle_history: 50";
  s.configure(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] {
    const auto status = s.status();
    return troubles(status).empty() && status.at("queue").at("pending") == 0 &&
           status.at("queue").at("running") == 0 && status.at("kernels")[0].at("cycle_id") == "";
  }));
  CHECK(s.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  const auto twice = double_settlements(s);
  INFO(told(twice));
  CHECK(twice.empty());
  const auto wrong = disagreements(s);
  INFO(told(wrong) << read_file(s.log_path()));
  CHECK(wrong.empty());
  for (const auto& row : s.dispatches())
    CHECK(row.at("status") == "done");
  CHECK(s.state().find(agents_text) != std::string::npos);
}

} // namespace boyd::kill_test
