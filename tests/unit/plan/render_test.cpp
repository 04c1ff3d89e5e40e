#include "boyd/plan/recent_results.hpp"
#include "boyd/plan/system_prompt.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

namespace boyd::render_test {

using namespace boyd;
using namespace boyd::test;

namespace {

dispatch ended(const char* id, const char* agent, dispatch_status status, const char* when) {
  dispatch d;
  d.dispatch_id = id;
  d.agent_id = agent;
  d.status = status;
  d.attempt = 1;
  d.finished_at = at(when);
  return d;
}

} // namespace

TEST_CASE("recent results are rendered from rows, newest first") {
  auto done = ended("1", "agent-a", dispatch_status::done, "2026-02-13T10:00:00Z");
  done.outcome.summary = "wrote the briefing\nand more";
  auto failed = ended("2", "agent-b", dispatch_status::failed, "2026-02-13T10:05:00Z");
  failed.attempt = 3;
  failed.outcome.failure = failure_class::transient;
  failed.outcome.summary = "partial";
  failed.outcome.error = "timed out after 10m";
  auto unproven = ended("3", "agent-c", dispatch_status::failed, "2026-02-13T10:05:00Z");
  unproven.outcome.verification = verification_verdict::failed;
  auto running = ended("4", "agent-d", dispatch_status::running, "2026-02-13T10:06:00Z");
  CHECK(plan::render_recent_results({done, failed, unproven, running}) ==
        "- 2026-02-13T10:05:00Z agent-c[failed, verification failed]:\n"
        "- 2026-02-13T10:05:00Z agent-b[failed, transient, attempt 3/3]: timed out after 10m\n"
        "- 2026-02-13T10:00:00Z agent-a[done]: wrote the briefing");
  CHECK(plan::render_recent_results({}) == "(none yet)");
  CHECK(plan::render_recent_results({running}) == "(none yet)");
}

TEST_CASE("recent results are bounded in lines and characters") {
  std::vector<dispatch> rows;
  for (int i = 0; i < 50; ++i) {
    rows.push_back(ended("1", "a", dispatch_status::done, "2026-02-13T10:00:00Z"));
    rows.back().outcome.summary = std::string(5000, 'x') + "\xFF";
  }
  const auto text = plan::render_recent_results(rows, 3);
  CHECK(std::ranges::count(text, '\n') == 2);
  CHECK(text.size() < 3 * (limits::history_cell_characters + 60));
  rows[0].outcome.summary = "bad \xFF byte";
  CHECK(plan::render_recent_results({rows[0]}) ==
        "- 2026-02-13T10:00:00Z a[done]: bad \xEF\xBF\xBD byte");
}

TEST_CASE("the system prompt keeps what is stable in front") {
  plan::system_prompt_parts parts;
  parts.instructions = "You are Boyd.\n";
  parts.identity = "calm";
  parts.goal = "\nKeep the tests green.\n";
  parts.skills = "s1";
  parts.tools = "t1";
  parts.memory = "m1";
  parts.state = "# Kernel State";
  parts.time = "2026-02-13T10:00:00Z";
  const auto prompt = plan::make_system_prompt(parts);
  CHECK(prompt.text == "You are Boyd.\n\n## Identity\n\ncalm\n\n## Kernel Objective\n\n"
                       "Keep the tests green.\n\n## Skills\n\ns1\n\n## Tools\n\nt1\n\n"
                       "## Memory\n\nm1\n\n## State\n\n# Kernel State\n\n"
                       "## Time\n\n2026-02-13T10:00:00Z\n");
  parts.memory = "m2";
  parts.state = "changed";
  parts.time = "2026-02-13T11:00:00Z";
  const auto later = plan::make_system_prompt(parts);
  CHECK(later.stable_bytes == prompt.stable_bytes);
  CHECK(later.text.substr(0, later.stable_bytes) == prompt.text.substr(0, prompt.stable_bytes));
  CHECK(prompt.text.substr(prompt.stable_bytes).find("Kernel Objective") == std::string::npos);
}

TEST_CASE("empty parts of the system prompt are left out") {
  plan::system_prompt_parts parts;
  CHECK(plan::make_system_prompt(parts).text.empty());
  parts.goal = "g";
  CHECK(plan::make_system_prompt(parts).text == "## Kernel Objective\n\ng\n");
}

} // namespace boyd::render_test
