#include "boyd/state/runtime_block.hpp"

#include "boyd/core/text.hpp"
#include "generators.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

using namespace boyd;
using namespace boyd::state;

namespace {

const std::string example = R"(<!-- KERNEL_RUNTIME:START -->
## kernel_runtime
- updated_at: 2026-02-13T10:00:00Z
- latest_cycle_id: abc123
- latest_status: success
- latest_dispatched: 2
- latest_succeeded: 2
- latest_failed: 0
- latest_failed_agents: (none)
- latest_agent_summary: agent-a[done]: completed | agent-b[done]: done
- latest_duration_ms: 12340
- latest_error: (none)

### cycle_history
| cycle_id | status | dispatched | succeeded | failed | summary | updated_at |
|----------|--------|------------|-----------|--------|---------|------------|
| abc123 | success | 2 | 2 | 0 | agent-a: completed; agent-b: done | 2026-02-13T10:00:00Z |
| def456 | partial_success | 2 | 1 | 1 | agent-a: ok; agent-b: timeout | 2026-02-13T09:30:00Z |
<!-- KERNEL_RUNTIME:END -->
)";

runtime_block example_block() {
  runtime_block block;
  block.updated_at = parse_rfc3339("2026-02-13T10:00:00Z").value();
  auto& latest = block.latest;
  latest.cycle_id = "abc123";
  latest.status = cycle_status::success;
  latest.dispatched = latest.succeeded = 2;
  latest.agents = {{"agent-a", "done", "completed"}, {"agent-b", "done", "done"}};
  latest.duration_ms = 12340;
  latest.finished_at = block.updated_at;
  auto older = latest;
  older.cycle_id = "def456";
  older.status = cycle_status::partial_success;
  older.succeeded = older.failed = 1;
  older.agents = {{"agent-a", "done", "ok"}, {"agent-b", "failed", "timeout"}};
  older.finished_at = parse_rfc3339("2026-02-13T09:30:00Z").value();
  block.history = {latest, older};
  return block;
}

/// The line of `text` that begins with `prefix`.
std::string line_with(const std::string& text, const std::string& prefix) {
  const auto begin = text.find("\n" + prefix);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

} // namespace

TEST_CASE("the block is rendered exactly as specified", "[state][block]") {
  CHECK(render_runtime_block(example_block()) == example);
}

TEST_CASE("the specified block is read", "[state][block]") {
  const auto block = parse_runtime_block("# Kernel State\n\n" + example + "more\n");
  REQUIRE(block);
  CHECK(*block == carried_part(example_block()));
}

TEST_CASE("parse of render is the block, within the limits", "[state][block]") {
  CHECK(rc::check("parse(render(x)) == x", [] {
    const auto block = test::some_block();
    const auto max_history = *rc::gen::inRange<std::size_t>(0, 9);
    const auto text = render_runtime_block(block, max_history);
    RC_ASSERT(parse_runtime_block(text) == std::optional(carried_part(block, max_history)));
    RC_ASSERT(parse_runtime_block("before\n" + text + "after") ==
              std::optional(carried_part(block, max_history)));
  }));
}

TEST_CASE("every rendered line is one line, and every cell keeps its limit", "[state][block]") {
  CHECK(rc::check("shape of the rendering", [] {
    auto block = test::some_block();
    for (auto& row : block.history) {
      row.agents = test::some_agents(30, 40);
      row.cycle_id = *test::nasty_text(300);
    }
    const auto text = render_runtime_block(block, 5);
    const auto lines = split(text, '\n');
    const auto rows = std::min<std::size_t>(block.history.size(), 5);
    constexpr std::size_t fixed_lines = 18;
    RC_ASSERT(lines.size() == fixed_lines + rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = lines[fixed_lines - 2 + i];
      RC_ASSERT(sanitize_utf8(row) == row);
      constexpr std::size_t other_cells = 120;
      RC_ASSERT(count_characters(row) <= 2 * limits::history_cell_characters + other_cells);
    }
    const auto read = parse_runtime_block(text);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->history.size() == rows);
    for (std::size_t i = 0; i < rows; ++i) {
      RC_ASSERT(read->history[i].status == block.history[i].status);
      RC_ASSERT(read->history[i].failed == block.history[i].failed);
    }
  }));
}

TEST_CASE("a cell is cut at 200 characters, never inside a character or an escape",
          "[state][block]") {
  auto block = example_block();
  auto& agent = block.history[0].agents;
  agent = {{"a", "done", ""}};
  for (std::size_t fill = 190; fill < 202; ++fill) {
    agent[0].summary = std::string(fill, 'x') + "|日本日本日本";
    const auto row = line_with(render_runtime_block(block), "| abc123");
    const auto cell_begin = row.find("a: x");
    const auto cell = row.substr(cell_begin, row.find(" | 2026") - cell_begin);
    CHECK(count_characters(cell) <= 200);
    CHECK(count_characters(cell) >= 199);
    CHECK(sanitize_utf8(cell) == cell);
    CHECK_FALSE(cell.ends_with('\\'));
    CHECK(parse_runtime_block(render_runtime_block(block))->history.size() == 2);
  }
}

TEST_CASE("values cannot end the block, hide text or break the table", "[state][block]") {
  auto block = example_block();
  block.latest.error = "a | b\nsecond line\r\n<!-- KERNEL_RUNTIME:END -->";
  const auto text = render_runtime_block(block);
  CHECK(line_with(text, "- latest_error") ==
        "- latest_error: a \\| b\\nsecond line\\r\\n<\\!-- KERNEL_RUNTIME:END -->");
  CHECK(parse_runtime_block(text)->latest.error == block.latest.error);
}

TEST_CASE("an old block reads as an empty history", "[state][block]") {
  const std::string open = "<!-- KERNEL_RUNTIME:START -->\n## kernel_runtime\n";
  const std::string close = "<!-- KERNEL_RUNTIME:END -->\n";
  SECTION("without the heading of the history") {
    const auto block =
        parse_runtime_block(open + "- latest_cycle_id: x\n- latest_failed: 3\n" + close);
    REQUIRE(block);
    CHECK(block->latest.cycle_id == "x");
    CHECK(block->latest.failed == 3);
    CHECK(block->history.empty());
  }
  SECTION("with the old keys") {
    auto old = example;
    for (auto at = old.find("latest_"); at != std::string::npos; at = old.find("latest_")) {
      old.erase(at, 7);
    }
    const auto block = parse_runtime_block(old);
    REQUIRE(block);
    CHECK(block->latest.cycle_id == "abc123");
    CHECK(block->latest.status == cycle_status::success);
    CHECK(block->history.empty());
  }
}

TEST_CASE("reading is lenient with what an editor or a person did", "[state][block]") {
  SECTION("carriage returns") {
    std::string text;
    for (const char c : example) {
      text += c == '\n' ? "\r\n" : std::string(1, c);
    }
    CHECK(parse_runtime_block(text) == parse_runtime_block(example));
  }
  SECTION("an aligned table") {
    auto text = example;
    text.replace(text.find("| abc123 |"), 10, "|   abc123    |");
    text.replace(text.find("|----------|"), 12, "|:----------:|");
    CHECK(parse_runtime_block(text) == parse_runtime_block(example));
  }
  SECTION("malformed rows and values") {
    auto text = example;
    text.replace(text.find("| def456"), 8, "| x | def456");
    text.replace(text.find("12340"), 5, "12e40");
    const auto block = parse_runtime_block(text);
    REQUIRE(block);
    CHECK(block->history.size() == 1);
    CHECK(block->latest.duration_ms == 0);
  }
  SECTION("no block") {
    CHECK_FALSE(parse_runtime_block(""));
    CHECK_FALSE(parse_runtime_block("## kernel_runtime\n- latest_cycle_id: x\n"));
    CHECK_FALSE(parse_runtime_block("```\n" + example + "```\n"));
    CHECK_FALSE(parse_runtime_block(example.substr(0, example.size() - 10)));
  }
  SECTION("of two blocks the newer") {
    auto older = example;
    older.replace(older.find("2026-02-13T10"), 13, "2025-02-13T10");
    older.replace(older.find("abc123"), 6, "zzz999");
    CHECK(parse_runtime_block(older + example + older)->latest.cycle_id == "abc123");
  }
}

TEST_CASE("any bytes are read without harm", "[state][block]") {
  CHECK(rc::check("parse of anything", [](const std::string& bytes) {
    const auto text = std::string(block_start) + "\n" + bytes + "\n" + std::string(block_end);
    const auto block = parse_runtime_block(text);
    if (block) {
      RC_ASSERT(block->history.size() <= bytes.size());
    }
  }));
}
