#include "main_job.hpp"

#include "agreement.hpp"
#include "boyd/state/runtime_block.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <set>

namespace boyd::test {

namespace {

constexpr int cycles = 3;

void check_commits(const site& s, const std::vector<std::string>& ids) {
  const auto commits = commits_of(s);
  const auto first = std::ranges::find_if(
      commits, [](const commit_line& c) { return c.subject.starts_with("pre-cycle "); });
  std::vector<std::string> subjects;
  for (auto it = first; it != commits.end(); ++it)
    subjects.push_back(it->subject);
  std::vector<std::string> expected;
  for (const auto& id : ids) {
    expected.push_back("pre-cycle " + id);
    expected.push_back("cycle " + id + ": partial_success");
  }
  CHECK(subjects == expected);
  const auto node = s.status().at("node").at("node_id").get<std::string>();
  for (auto it = first; it != commits.end(); ++it) {
    INFO(it->subject);
    CHECK(it->subject.find(it->cycle) != std::string::npos);
    CHECK_FALSE(it->cycle.empty());
    CHECK(it->node == node);
    CHECK(it->graph_head.size() == 64);
    CHECK(it->graph_head.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(s.git({"log", "--format=%an <%ae>", "-1"}) == "boyd <kernel@boyd.local>\n");
}

void check_rows(const site& s, const std::vector<std::string>& ids) {
  const auto rows = s.dispatches();
  CHECK(rows.size() == ids.size() * 3);
  for (const auto& row : rows) {
    INFO(row.dump());
    const bool bad = row.at("agent_id") == "bad";
    CHECK(row.at("status") == (bad ? "failed" : "done"));
    CHECK(row.at("failure_class") == (bad ? "deterministic" : "none"));
    CHECK(row.at("exit_code") == (bad ? 3 : 0));
    CHECK(row.at("verification") == (bad ? "failed" : "passed"));
    CHECK(row.at("attempt") == 1);
    CHECK(row.at("fence") == 1);
    CHECK(row.at("rescues") == 0);
    CHECK(row.at("finished_at").is_string());
    CHECK(std::ranges::count(ids, row.at("cycle_id").get<std::string>()) == 1);
  }
}

void check_state(const site& s, const std::vector<std::string>& ids) {
  const auto block = state::parse_runtime_block(s.state());
  REQUIRE(block);
  REQUIRE(block->history.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& row = block->history[i];
    CHECK(row.cycle_id == ids[ids.size() - 1 - i]);
    CHECK(name_of(row.status) == "partial_success");
    CHECK(row.dispatched == 3);
    CHECK(row.succeeded == 2);
    CHECK(row.failed == 1);
    CHECK(row.agents.size() == 3);
  }
  CHECK(block->latest.cycle_id == ids.back());
  CHECK(block->latest.failed_agents == std::vector<std::string>{"bad"});
  for (const auto& agent : block->latest.agents)
    CHECK(agent.status == (agent.agent_id == "bad" ? "failed" : "done"));
}

} // namespace

test_settings briefing_settings(const std::string& store) {
  test_settings t;
  t.node = "max_concurrent: 4, store: \"" + store + "\"";
  t.agents = {{"report", "say ran; echo all quiet", "priority: 30; require: [exit_zero]"},
              {"bad", "say ran; echo the link is down >&2; exit 3",
               "priority: 20; retry: {max_attempts: 1}; require: [exit_zero]"},
              {"notes", "say ran; date +%s.%N > \"$BOYD_KERNEL_HOME/notes.txt\"; echo noted",
               "priority: 10; require: [exit_zero]"}};
  return t;
}

void check_three_cycles(const site& s) {
  std::vector<std::string> ids;
  for (int i = 0; i < cycles; ++i) {
    const auto r = s.run({"cycle", "--json"});
    INFO(r.err);
    REQUIRE(r.code == 3);
    const auto cycle = r.json();
    REQUIRE(cycle.is_object());
    ids.push_back(cycle.at("cycle_id").get<std::string>());
    CHECK(cycle.at("status") == "partial_success");
    CHECK(cycle.at("failed_agents") == nlohmann::json::array({"bad"}));
    CHECK(cycle.at("error") == "");
    const auto bad = row_of(cycle.at("agents"), "agent_id", "bad");
    REQUIRE(bad.is_object());
    CHECK(bad.at("status") == "failed");
    CHECK(bad.at("failure_class") == "deterministic");
  }
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == cycles);
  check_state(s, ids);
  check_rows(s, ids);
  check_commits(s, ids);
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
  CHECK(s.said("ran") == cycles * 3);
}

} // namespace boyd::test
