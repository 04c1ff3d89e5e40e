#include "boyd/state/reducer.hpp"

#include "boyd/core/text.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/files_of_kernel.hpp"
#include "boyd/state/runtime_block.hpp"
#include "boyd/state/seed.hpp"
#include "generators.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

using namespace boyd;
using namespace boyd::state;

namespace {

const utc_time ten = parse_rfc3339("2026-02-13T10:00:00Z").value();

action_line action(const std::string& agent, std::chrono::minutes after = 0min,
                   const std::string& text = "completed") {
  return {ten + after, agent, text, "done"};
}

const std::string line_a = "- 2026-02-13T10:00:00Z agent-a: completed (done)\n";
const std::string line_b = "- 2026-02-13T10:05:00Z agent-b: completed (done)\n";

} // namespace

TEST_CASE("the seed is exactly as specified", "[state][seed]") {
  CHECK(seed_state("default") == "# Kernel State\n## identity\ndefault autonomous kernel\n## "
                                 "recent_actions\n(none yet)\n");
}

TEST_CASE("an action is one recognisable line", "[state][reducer]") {
  CHECK(render_action(action("agent-a")) + "\n" == line_a);
  CHECK(is_action_line(render_action({ten, "a", "\n first\tline (odd) \nsecond", "failed"})));
  CHECK(render_action({ten, "a", "", "done"}) == "- 2026-02-13T10:00:00Z a: (none) (done)");
  for (const std::string other :
       {"", "- buy milk (done)", "- 2026-02-13 agent-a: completed (done)",
        "- 2026-02-13T10:00:00Z agent a: completed (done)",
        "- 2026-02-13T10:00:00Z agent-a: completed (maybe)",
        "- 2026-02-13T10:00:00Z agent-a: completed", "* 2026-02-13T10:00:00Z a: x (done)"}) {
    CHECK_FALSE(is_action_line(other));
  }
}

TEST_CASE("actions replace the seed's placeholder, newest first", "[state][reducer]") {
  const auto merged =
      merge_recent_actions(seed_state("k"), {action("agent-a"), action("agent-b", 5min)}, 20);
  CHECK(merged ==
        "# Kernel State\n## identity\nk autonomous kernel\n## recent_actions\n" + line_b + line_a);
  CHECK(merge_recent_actions(merged, {action("agent-a")}, 20) == merged);
  CHECK(merge_recent_actions(merged, {}, 1) ==
        "# Kernel State\n## identity\nk autonomous kernel\n## recent_actions\n" + line_b);
  CHECK(merge_recent_actions(seed_state("k"), {}, 20) == seed_state("k"));
}

TEST_CASE("the agents' lines in the section stay", "[state][reducer]") {
  const std::string before = "## recent_actions\n\nmy own words\n" + line_a +
                             "- mine (done)\n### deeper\nx\n" + "## next\n" + line_a;
  CHECK(merge_recent_actions(before, {action("agent-b", 5min)}, 20) ==
        "## recent_actions\n\nmy own words\n" + line_b + line_a + "- mine (done)\n### deeper\nx\n" +
            "## next\n" + line_a);
}

TEST_CASE("a missing section is made before the block, or at the end", "[state][reducer]") {
  const auto block = render_runtime_block({});
  CHECK(merge_recent_actions("text", {action("agent-a")}, 20) ==
        "text\n\n## recent_actions\n" + line_a);
  CHECK(merge_recent_actions("text\n\n" + block + "tail\n", {action("agent-a")}, 20) ==
        "text\n\n## recent_actions\n" + line_a + "\n" + block + "tail\n");
  CHECK(merge_recent_actions("", {}, 20).empty());
}

TEST_CASE("quoted sections and the block's own bytes are left alone", "[state][reducer]") {
  const std::string quoted = "```\n## recent_actions\n(none yet)\n```\n";
  CHECK(merge_recent_actions(quoted, {action("agent-a")}, 20) ==
        quoted + "\n## recent_actions\n" + line_a);
  const auto block = render_runtime_block({});
  const auto file = "## recent_actions\n" + block;
  CHECK(merge_recent_actions(file, {action("agent-a")}, 20) ==
        "## recent_actions\n" + line_a + block);
}

TEST_CASE("line ends follow the file, also without a last one", "[state][reducer]") {
  CHECK(merge_recent_actions("a\r\n## recent_actions", {action("agent-a")}, 20) ==
        "a\r\n## recent_actions\r\n" + line_a.substr(0, line_a.size() - 1) + "\r\n");
}

namespace {

std::string some_document() {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "text\n", "\n", "## recent_actions\n", "## recent_actions \r\n", "(none yet)\n", "## other\n",
      "### deeper\n", "# top\n", "```\n", "- mine\n", line_a, line_b, render_runtime_block({}),
      std::string(block_start) + "\n", std::string(block_end) + "\n", "no end"});
  std::string text;
  for (const auto& each : *rc::gen::container<std::vector<std::string>>(piece)) {
    text += each;
  }
  return text;
}

/// The lines that are not the reducer's, without line ends.
std::vector<std::string> foreign_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (auto line : split(text, '\n')) {
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!is_action_line(line) && line != "(none yet)" && !line.empty()) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

} // namespace

TEST_CASE("merging is bounded, repeatable and touches only its own lines", "[state][reducer]") {
  CHECK(rc::check("reducer", [] {
    const auto file = some_document();
    std::vector<action_line> actions(*rc::gen::inRange<std::size_t>(1, 5));
    for (auto& each : actions) {
      each = {from_unix_ms(*rc::gen::inRange<std::int64_t>(0, 5000)), "agent",
              *state::test::nasty_text(4), "done"};
    }
    const auto max = *rc::gen::inRange<std::size_t>(1, 6);
    const auto once = merge_recent_actions(file, actions, max);
    RC_ASSERT(merge_recent_actions(once, actions, max) == once);
    auto before = foreign_lines(file);
    const auto after = foreign_lines(once);
    if (after.size() != before.size()) {
      // The section was made.
      RC_ASSERT(after.size() == before.size() + 1);
      const auto made = std::find(after.begin(), after.end(), "## recent_actions");
      RC_ASSERT(made != after.end());
    } else {
      RC_ASSERT(after == before);
    }
  }));
}

TEST_CASE("snapshots name their time and version, and cannot be broken out of", "[state][files]") {
  init_snapshot init{"default", "node-1", "0.1.0", ten, "a: |\n  ```\n  ````\n"};
  const auto text = render_init(init);
  CHECK(text.find("- written_at: 2026-02-13T10:00:00Z\n- kernel_id: default\n- node_id: node-1\n"
                  "- version: 0.1.0\n") != std::string::npos);
  CHECK(text.find("\n`````yaml\na: |\n  ```\n  ````\n`````\n") != std::string::npos);
  init.at += 1h;
  CHECK(same_snapshot(text, render_init(init)));
  init.configuration_yaml += "b: 1\n";
  CHECK_FALSE(same_snapshot(text, render_init(init)));
  const auto prompt = render_system_prompt({"default", "0.1.0", ten, "be brief"});
  CHECK(prompt.ends_with("\n```markdown\nbe brief\n```\n"));
}
