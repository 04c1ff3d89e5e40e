#include "agreement.hpp"
#include "harness.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <set>

namespace boyd::faults_test {

using namespace boyd::test;

namespace {

/// A fault point, and the actor that it ends.
struct crash_case {
  std::string point;
  std::string actor;
};

int restarts_of(const nlohmann::json& status, const std::string& actor) {
  int n = 0;
  for (const auto& a : status.at("actors"))
    if (a.at("name").get<std::string>().starts_with(actor))
      n += a.at("restarts").get<int>();
  return n;
}

} // namespace

TEST_CASE("faults: each part crashes alone, comes again, and the cycle is recorded",
          "[acceptance]") {
  const auto which = GENERATE(
      crash_case{"planner.plan", "planner"}, crash_case{"state_writer.write", "state_writer"},
      crash_case{"git_committer.commit", "git_committer"},
      crash_case{"graph_recorder.append", "graph_recorder"},
      crash_case{"librarian.gather", "librarian"}, crash_case{"kernel.step", "kernel:default"},
      crash_case{"store.apply", "store"}, crash_case{"executor.run", "dispatcher"});
  INFO(which.point);
  test_settings t;
  t.agents = {{"first", "say began; echo done", "retry: {max_attempts: 3, base: 10ms}"},
              {"second", "say began; echo done", "retry: {max_attempts: 3, base: 10ms}"}};
  t.faults = "[{point: " + which.point + ", action: crash, count: 1}]";
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  const auto cycle = s.run({"cycle", "--json"});
  INFO(cycle.out << cycle.err << node.log());
  CHECK(cycle.code == 0);
  REQUIRE(node.running());
  CHECK(node.log().find("fault point " + which.point + ": strikes") != std::string::npos);
  CHECK(eventually([&] {
    const auto status = s.status();
    return restarts_of(status, which.actor) >= 1 && troubles(status).empty();
  }));
  const auto status = s.status();
  INFO(status.dump(1));
  CHECK(restarts_of(status, which.actor) >= 1);
  CHECK(restarts_of(status, "root") == 0);
  REQUIRE(cycle.json().is_object());
  const auto id = cycle.json().at("cycle_id").get<std::string>();
  // A trigger whose answer was lost may be repeated: then there are two cycles, each complete.
  std::set<std::string> work;
  for (const auto& row : s.dispatches()) {
    INFO(row.dump());
    CHECK(row.at("status") == "done");
    CHECK(work.insert(row.at("cycle_id").get<std::string>() + row.at("agent_id").get<std::string>())
              .second);
  }
  CHECK(work.count(id + "first") == 1);
  CHECK(work.count(id + "second") == 1);
  CHECK(s.said("began") == work.size());
  // The kernel's own crash doubles nothing: a repeated trigger finds the cycle of the first.
  if (which.point == "kernel.step")
    CHECK(work.size() == t.agents.size());
  // The next cycle is as if nothing had been.
  CHECK(s.run({"cycle"}).code == 0);
  CHECK(eventually([&] { return records_of(s, id) == 1; }));
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
}

} // namespace boyd::faults_test
