#include "boyd/state/document.hpp"

#include "boyd/core/text.hpp"
#include "boyd/state/runtime_block.hpp"
#include "generators.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

using namespace boyd;
using namespace boyd::state;

namespace {

const std::string start = std::string(block_start) + "\n";
const std::string end = std::string(block_end) + "\n";

std::string block_of(const std::string& id) {
  runtime_block block;
  block.latest.cycle_id = id;
  block.history.push_back(block.latest);
  return render_runtime_block(block);
}

const std::string old_block = block_of("old");
const std::string new_block = block_of("new");

/// The rendering without its END line.
std::string half(const std::string& block) {
  return block.substr(0, block.size() - end.size());
}

std::size_t lines_equal(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (auto line : split(text, '\n')) {
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    count += line == wanted ? 1U : 0U;
  }
  return count;
}

std::string replaced(std::string_view text) {
  return replace_runtime_block(text, new_block);
}

} // namespace

TEST_CASE("a block is replaced in place", "[state][document]") {
  CHECK(replaced("before\n\n" + old_block + "after\n") == "before\n\n" + new_block + "after\n");
  CHECK(replaced(old_block) == new_block);
  CHECK(replaced("x\n" + start + "anything\n" + end + "y") == "x\n" + new_block + "y");
}

TEST_CASE("a file without a block gets one at its end", "[state][document]") {
  CHECK(replaced("") == new_block);
  CHECK(replaced("text\n") == "text\n\n" + new_block);
  CHECK(replaced("text") == "text\n" + new_block);
  CHECK(agents_part(replaced("text")) == "text");
  CHECK(agents_part(replaced("text\n")) == "text\n");
}

TEST_CASE("several blocks become one, in the place of the first", "[state][document]") {
  CHECK(replaced("a\n" + old_block + "b\n" + old_block + "c\n" + old_block + "d") ==
        "a\n" + new_block + "b\nc\nd");
}

TEST_CASE("stray markers go, the text around them stays", "[state][document]") {
  CHECK(replaced("a\n" + end + "b\n" + old_block + "c\n" + end + "d\n" + start + "e\n") ==
        "a\nb\n" + new_block + "c\nd\ne\n");
  CHECK(replaced("a\n" + end + "b\n") == "a\nb\n\n" + new_block);
}

TEST_CASE("a half block does not swallow the agents' text", "[state][document]") {
  const std::string text = "\n## plans\n- note: buy milk\n| a | b |\n|---|---|\n";
  SECTION("cut after any of its lines") {
    const auto whole = half(old_block);
    for (auto cut = whole.find('\n'); cut != std::string::npos; cut = whole.find('\n', cut + 1)) {
      const auto result = replaced("a\n" + whole.substr(0, cut + 1) + text);
      // The blank line before the history belongs to the block only where the heading follows.
      const bool blank_line = whole.substr(0, cut + 1).ends_with("\n\n");
      CHECK(result == "a\n" + new_block + (blank_line ? "\n" : "") + text);
    }
  }
  SECTION("followed by a stray END") {
    CHECK(replaced(half(old_block) + text + end + "z") == new_block + text + "z");
  }
  SECTION("followed by a whole block") {
    CHECK(replaced("a\n" + half(old_block) + text + old_block + "z") ==
          "a\n" + text + new_block + "z");
  }
  SECTION("with nothing of a block after START") {
    CHECK(replaced("a\n" + start + text) == "a\n" + new_block + text);
  }
  SECTION("a bullet and a table that only resemble ours") {
    const std::string own = "- latest_news: none\n| x | success | 1 | 1 | 0 | y | yesterday |\n";
    CHECK(replaced(start + "## kernel_runtime\n" + own) == new_block + own);
  }
}

TEST_CASE("markers in code fences and within lines are the agents'", "[state][document]") {
  const auto example = GENERATE_COPY(
      as<std::string>{}, "```markdown\n" + old_block + "```\n", "~~~\n" + old_block + "~~~\n",
      "   ````\n```\n" + start + "````\n", "> " + start, "see " + end, start.substr(0, 20) + "\n",
      "  " + start, "`" + std::string(block_start) + "`\n");
  CHECK(replaced(example + "tail\n") == example + "tail\n\n" + new_block);
  CHECK(replaced(example + old_block + "tail\n") == example + new_block + "tail\n");
}

TEST_CASE("a fence that is never closed hides nothing", "[state][document]") {
  const std::string open = "```\nforgotten\n";
  CHECK(replaced(open + old_block) == open + new_block);
  CHECK(replaced(replaced(open)) == replaced(open));
  CHECK(replaced("```js\n```js\n" + old_block + "~~~\n") == "```js\n```js\n" + new_block + "~~~\n");
}

TEST_CASE("line ends follow the file", "[state][document]") {
  const auto windows = [](std::string_view text) {
    std::string with;
    for (const char c : text) {
      with += c == '\n' ? "\r\n" : std::string(1, c);
    }
    return with;
  };
  CHECK(replaced(windows("a\n" + old_block + "b\n")) == windows("a\n" + new_block + "b\n"));
  CHECK(replaced(windows("a\nb\n")) == windows("a\nb\n\n" + new_block));
  CHECK(agents_part(replaced("a\r\nb\r\n")) == "a\r\nb\r\n");
  CHECK(agents_part(replaced("a\r")) == "a\r");
  // A block that stands keeps its own; a new one takes those that most lines have.
  CHECK(replaced("a\r\nb\r\n" + old_block + "c\r\n") == "a\r\nb\r\n" + new_block + "c\r\n");
  CHECK(replaced("a\r\nb\r\nc\n") == "a\r\nb\r\nc\n" + windows("\n" + new_block));
  CHECK(replaced("a\nb\nc\r\n") == "a\nb\nc\r\n\n" + new_block);
  CHECK(agents_part(replaced("a\r\nb\r\nc\n")) == "a\r\nb\r\nc\n");
  CHECK(replaced(replaced("a\r\nb\r\nc")) == replaced("a\r\nb\r\nc"));
}

namespace {

/// Files made of pieces that are hard to tell apart.
std::string some_file() {
  const auto piece =
      rc::gen::elementOf(std::vector<std::string>{"text",
                                                  "text\n",
                                                  "\n",
                                                  "\r\n",
                                                  "\r",
                                                  "# heading\n",
                                                  "- note: x\n",
                                                  "```\n",
                                                  "````\n",
                                                  "```cpp\n",
                                                  "~~~\n",
                                                  "  ```\n",
                                                  "```",
                                                  start,
                                                  end,
                                                  std::string(block_start),
                                                  std::string(block_end),
                                                  std::string(block_start) + " \r\n",
                                                  "## kernel_runtime\n",
                                                  "- latest_status: success\n",
                                                  "- status: failed\n",
                                                  "### cycle_history\n",
                                                  old_block,
                                                  half(old_block),
                                                  old_block.substr(0, 60),
                                                  "| a | b |\n",
                                                  "\xEF\xBB\xBF",
                                                  "\xff\xfe",
                                                  "<!-- KERNEL_RUNTIME:START --> tail\n",
                                                  std::string(1, '\0')});
  std::string text;
  for (const auto& each : *rc::gen::container<std::vector<std::string>>(piece)) {
    text += each;
  }
  return text;
}

/// True when every byte of `part` occurs in `whole` in order.
bool is_subsequence(std::string_view part, std::string_view whole) {
  std::size_t at = 0;
  for (const char c : part) {
    at = whole.find(c, at);
    if (at == std::string_view::npos) {
      return false;
    }
    ++at;
  }
  return true;
}

} // namespace

TEST_CASE("the agents' part survives byte for byte", "[state][document]") {
  CHECK(rc::check("replace keeps agents_part, is idempotent, leaves one block", [] {
    const auto file = some_file();
    const auto once = replace_runtime_block(file, new_block);
    RC_ASSERT(agents_part(once) == agents_part(file));
    RC_ASSERT(replace_runtime_block(once, new_block) == once);
    RC_ASSERT(parse_runtime_block(once)->latest.cycle_id == "new");
    RC_ASSERT(is_subsequence(agents_part(file), once));
    const auto other = replace_runtime_block(once, block_of("other"));
    RC_ASSERT(agents_part(other) == agents_part(file));
    RC_ASSERT(replace_runtime_block(other, new_block) == once);
  }));
}

TEST_CASE("an earlier file's block is put back", "[state][document]") {
  CHECK(kernels_part("mine\n" + old_block + "more\n") == old_block);
  CHECK(kernels_part("mine\n").empty());
  CHECK(with_block_of("mine\n", "theirs\n" + old_block) == "mine\n");
  CHECK(with_block_of("mine\n\n" + new_block, "theirs\n") == "mine\n");
  CHECK(rc::check("what was before the replacement stands again", [] {
    const auto before = replace_runtime_block(some_file(), old_block);
    const auto after = replace_runtime_block(before, new_block);
    RC_ASSERT(with_block_of(after, before) == before);
    RC_ASSERT(agents_part(with_block_of(after, some_file())) == agents_part(after));
  }));
}

TEST_CASE("text without anything of ours is the agents' whole", "[state][document]") {
  CHECK(rc::check("agents_part(x) == x without markers", [](const std::string& text) {
    RC_PRE(text.find("KERNEL_RUNTIME") == std::string::npos);
    RC_ASSERT(agents_part(text) == text);
    RC_ASSERT(replaced(text).starts_with(text));
    RC_ASSERT(lines_equal(replaced(text), block_start) == 1U);
    RC_ASSERT(lines_equal(replaced(text), block_end) == 1U);
  }));
}

TEST_CASE("hostile fences cost no more than their size", "[state][document]") {
  std::string file;
  for (std::size_t length = 3; length < 1500; ++length) {
    file += std::string(1503 - length, '`') + "x\n";
  }
  for (int i = 0; i < 100'000; ++i) {
    file += "```x\n" + start;
  }
  const auto once = replaced(file);
  CHECK(lines_equal(once, block_start) == 1);
}

TEST_CASE("only what nobody writes counts as damage", "[state]") {
  CHECK_FALSE(damage_of("").empty());
  CHECK_FALSE(damage_of(std::string(3, '\0')).empty());
  CHECK_FALSE(damage_of("text" + std::string(512, '\0') + "text").empty());
  CHECK(damage_of("text" + std::string(511, '\0') + "text").empty());
  CHECK(damage_of(" ").empty());
  CHECK(damage_of("\xff latin-1, and no heading").empty());
}
