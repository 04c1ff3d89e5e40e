#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"
#include "boyd/memory/words.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace boyd::document_test {

using namespace boyd::memory;

namespace {

constexpr const char* file = "# MEMORY\n"
                             "\n"
                             "Some words.\n"
                             "\n"
                             "## Learned Patterns\n"
                             "\n"
                             "### Build\n"
                             "\n"
                             "- 2026-02-01 first\n"
                             "  goes on\n"
                             "\n"
                             "  and on\n"
                             "- 2026-02-02 second\n"
                             "\n"
                             "## Important Facts\n"
                             "* a fact\n"
                             "```\n"
                             "- no entry\n"
                             "```\n";

utc_time now() {
  return *parse_rfc3339("2026-03-01T10:00:00Z");
}

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> all;
  for (const auto& p : split_memory(text))
    if (p.entry)
      all.push_back(p.section + ": " + words_of_entry(p.text));
  return all;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("memory file: pieces are the file, entries have their sections", "[memory]") {
  const auto pieces = split_memory(file);
  CHECK(join_memory(pieces) == file);
  CHECK(entries_of(file) ==
        texts{"Learned Patterns — Build: 2026-02-01 first\n  goes on\n\n  and on",
              "Learned Patterns — Build: 2026-02-02 second",
              "Important Facts: a fact\n```\n- no entry\n```"});
  CHECK(date_of_entry("- **2026-02-01** a") == "2026-02-01");
  CHECK_FALSE(date_of_entry("- on 2026-02-01"));
}

TEST_CASE("memory file: any text is split and joined again", "[memory]") {
  REQUIRE(rc::check([] {
    const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
        std::vector<std::string>{"- a", "  b", "# T", "## S", "### U", "```", "~~~", "\n", "\n\n",
                                 "plain", "1. x", "é\xff", "\r\n"}));
    std::string text;
    for (const auto& w : words)
      text += w + (w.ends_with('\n') ? "" : "\n");
    RC_ASSERT(join_memory(split_memory(text)) == text);
    const auto cut = text.substr(0, text.size() - (text.empty() ? 0 : 1));
    RC_ASSERT(join_memory(split_memory(cut)) == cut);
  }));
}

TEST_CASE("memory file: an entry goes to the end at which its section grows", "[memory]") {
  auto c =
      append_entry(file, "learned patterns / build", "2026-03-01 third", default_caps(), now());
  CHECK(entries_of(c.file)[2] == "Learned Patterns — Build: 2026-03-01 third");
  CHECK(c.file.find("2026-02-02 second\n- 2026-03-01 third\n\n## Important") != std::string::npos);
  c = append_entry("## S\n- 2026-02-02 b\n- 2026-02-01 a\n", "S", "2026-02-03 c", {}, now());
  CHECK(c.file == "## S\n- 2026-02-03 c\n- 2026-02-02 b\n- 2026-02-01 a\n");
  c = append_entry("", "My Thoughts — Deep", "two\nlines", {}, now());
  CHECK(c.file == "## My Thoughts\n\n### Deep\n- two\n  lines\n");
  c = append_entry("## S", "S", "x", {}, now());
  CHECK(c.file == "## S\n- x\n");
}

TEST_CASE("memory file: over its cap the oldest leaves, a long entry keeps a pointer", "[memory]") {
  const section_caps caps{{"S", {2, 60}}};
  auto c = append_entry("## S\n- a\n- b\n", "S", "c", caps, now());
  CHECK(c.file == "## S\n- b\n- c\n");
  REQUIRE(c.archived.size() == 1);
  CHECK(c.archived[0].text == "- a\n");
  const std::string longer =
      "words that are far too many for so small a section, and some more of them";
  c = append_entry("## S\n", "S", longer, caps, now());
  REQUIRE(c.notes.size() == 1);
  CHECK(c.notes[0].text.find(longer) != std::string::npos);
  CHECK(c.file.find("→ research/" + c.notes[0].name) != std::string::npos);
  CHECK(count_characters(words_of_entry(split_memory(c.file)[1].text)) <= 60);
  CHECK(keep_caps(c.file, caps, now()).file == c.file);
  const auto once = add_to_archive("", "MEMORY.md", {{"S", "- a\n"}}, now());
  CHECK(once == "# Archive 2026-03\n\n## 2026-03-01 MEMORY.md — S\n- a\n");
  CHECK(add_to_archive(once, "MEMORY.md", {{"S", "- a\n"}}, now()) == once);
}

TEST_CASE("memory file: whatever is appended, nothing is ever lost", "[memory]") {
  REQUIRE(rc::check([](const std::vector<std::pair<unsigned, std::string>>& appended) {
    const section_caps caps{{"A", {2, 30}}, {"B", {1, 50}}};
    std::string memory;
    std::string archive;
    std::string research;
    std::vector<std::string> texts;
    for (const auto& [n, any] : appended) {
      std::string text = "entry " + std::to_string(texts.size());
      for (const char c : any)
        text += c >= ' ' && c < '\x7f' ? std::string(1, c) : "x";
      text = std::string(trim(text));
      texts.push_back(text);
      const auto c = append_entry(memory,
                                  n % 3 == 0   ? "A"
                                  : n % 3 == 1 ? "B"
                                               : "C",
                                  text, caps, now());
      archive = add_to_archive(archive, "MEMORY.md", c.archived, now());
      for (const auto& note : c.notes)
        research += note.text;
      memory = c.file;
    }
    for (const auto& text : texts) {
      INFO(text);
      RC_ASSERT((memory + archive + research).find(text) != std::string::npos);
    }
  }));
}

TEST_CASE("memory file: a new section stands below the one that it belongs to", "[memory]") {
  auto c = append_entry(file, "Learned Patterns — Test", "a third", {}, now());
  CHECK(entries_of(c.file)[2] == "Learned Patterns — Test: a third");
  CHECK(entries_of(c.file)[3].starts_with("Important Facts: "));
  CHECK(c.file.find("- 2026-02-02 second\n\n### Test\n- a third\n\n## Important") !=
        std::string::npos);
  // In a file whose sections stand one level deeper, and are spelled otherwise.
  c = append_entry("# M\n\n### learned patterns\n\n## B\n- b\n", "Learned Patterns / Test", "x", {},
                   now());
  CHECK(entries_of(c.file) == texts{"learned patterns — Test: x", "B: b"});
}

TEST_CASE("memory file: an entry that stands there already is found", "[memory]") {
  const section_caps caps{{"S", {2, 60}}};
  const std::string longer =
      "words that are far too many for so small a section, and some more of them";
  const auto c = append_entry("## S\n- a\n  more\n", "S", longer, caps, now());
  CHECK(has_entry(c.file, "s", longer));
  CHECK(has_entry(c.file, "S", "a\nmore"));
  CHECK_FALSE(has_entry(c.file, "S", "a"));
  CHECK_FALSE(has_entry(c.file, "T", longer));
  CHECK_FALSE(has_entry(c.file, "S", longer + "!"));
}

TEST_CASE("memory archive: an entry that another one begins with is kept, too", "[memory]") {
  auto archive = add_to_archive("", "MEMORY.md", {{"S", "- a\n  more\n"}}, now());
  archive = add_to_archive(archive, "MEMORY.md", {{"S", "- a\n"}}, now());
  CHECK(entries_of(archive) ==
        texts{"2026-03-01 MEMORY.md — S: a\n  more", "2026-03-01 MEMORY.md — S: a"});
  archive = add_to_archive(archive, "SOUL.md", {{"S", "- a\n"}}, now());
  CHECK(entries_of(archive).size() == 3);
}

TEST_CASE("memory: a line of a program names its section", "[memory]") {
  CHECK(read_remembered(" [Important Facts] the sky is blue ") ==
        remembered_line{"Important Facts", "the sky is blue"});
  CHECK(read_remembered("[A [b]] c")->section == "A [b");
  for (const char* bad : {"no section", "[] x", "[A]", "[A x", ""})
    CHECK_FALSE(read_remembered(bad));
}

TEST_CASE("memory for a prompt: identity stays, then the newest of each section", "[memory]") {
  const std::string soul = "# SOUL\n## Who I Am\n- somebody\n## Insights\n- one\n- two\n";
  const std::string memory = "## Facts\n- three\n- four\n";
  CHECK(memory_for_prompt({soul, memory}, 1000) == soul + "\n" + memory);
  CHECK(memory_for_prompt({"", soul}, 1000) == soul);
  const std::string filler = "## Rest\n- " + std::string(400, 'x') + "\n";
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  bool newest_alone = false;
  for (std::int64_t budget = 40; budget < 90; ++budget) {
    const auto tight = memory_for_prompt({soul, memory + filler}, budget);
    INFO(budget << "\n" << tight);
    CHECK(tight.starts_with("# SOUL\n## Who I Am\n- somebody\n"));
    CHECK_FALSE(has(tight, "xxx"));
    CHECK_FALSE(has(tight, "## Rest"));
    CHECK(has(tight, "left out"));
    // The newest of a section comes before its older ones.
    CHECK((!has(tight, "- one\n") || has(tight, "- two\n")));
    newest_alone = newest_alone || (has(tight, "## Insights\n- two\n") &&
                                    has(tight, "## Facts\n- four\n") && !has(tight, "- one\n"));
  }
  CHECK(newest_alone);
  // Identity stays whatever it costs.
  CHECK(memory_for_prompt({soul}, 1).find("- somebody\n") != std::string::npos);
}

TEST_CASE("memory for a prompt: the budget holds, and what is left out is counted", "[memory]") {
  REQUIRE(rc::check([] {
    const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
        std::vector<std::string>{"- a", "- 2026-02-01 some words", "  b", "## S", "### U", "# T",
                                 "plain words that go on for a while", "", "- 中文記憶", "```",
                                 "- an entry that is rather long for what it says"}));
    std::string text;
    for (const auto& w : words)
      text += w + "\n";
    const auto budget = *rc::gen::inRange<std::int64_t>(60, 200);
    const auto shown = memory_for_prompt({text, text}, budget);
    RC_ASSERT(count_tokens(shown) <= budget);
    const auto whole = count_tokens(text) * 2 + 2 <= budget;
    RC_ASSERT(!whole || shown.find("left out") == std::string::npos);
  }));
}

} // namespace boyd::document_test
