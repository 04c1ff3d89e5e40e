#include "boyd/memory/document.hpp"
#include "boyd/memory/entry.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

namespace boyd::entry_test {

using namespace boyd::memory;
using Catch::Matchers::Contains;

namespace {

utc_time at(const char* text) {
  return *parse_rfc3339(text);
}

std::vector<filed_entry> entries(const std::string& path, std::string_view bytes) {
  return entries_of_file("default", path, bytes, at("2026-11-29T10:00:00Z")).entries;
}

std::string wrong(std::string_view line) {
  const auto e = read_import_line(line);
  REQUIRE_FALSE(e);
  CHECK(e.error().code == errc::invalid_argument);
  CHECK_FALSE(e.error().next.empty());
  return e.error().what;
}

} // namespace

TEST_CASE("import line: what it says is read, and written back", "[memory]") {
  const auto e = read_import_line(
      "\xEF\xBB\xBF{\"key\":\"k1\",\"time\":\"2026-02-13T11:00:00+01:00\",\"source\":\"chat\","
      "\"author\":\"Lin Yue\",\"section\":\"S\",\"text\":\"one\\ntwo 记忆\",\"more\":[1]}\r");
  REQUIRE(e);
  CHECK(*e == memory_entry{"k1", "chat", "Lin Yue", "S", "one\ntwo 记忆",
                           at("2026-02-13T10:00:00Z"), true});
  CHECK(read_import_line(write_import_line(*e)).value() == *e);
  // Half of a surrogate pair, as JavaScript writes a text that was cut.
  CHECK(read_import_line(R"({"time":"2026-02-13T10:00:00Z","text":"a \ud83d"})")->text ==
        "a \xEF\xBF\xBD");
}

TEST_CASE("import line: any entry is read back as it was written", "[memory]") {
  REQUIRE(rc::check([](std::string text, std::int64_t ms) {
    constexpr std::int64_t century = 100LL * 365 * 86'400'000;
    memory_entry e;
    e.key = "k";
    e.time = from_unix_ms(((ms % century) + century) % century);
    e.text = "x";
    for (const char c : text)
      e.text += c > 0 ? c : '~';
    RC_ASSERT(read_import_line(write_import_line(e)).value() == e);
    RC_ASSERT(write_import_line(e).find('\n') == std::string::npos);
  }));
}

TEST_CASE("import line: an error says what is wrong", "[memory]") {
  CHECK_THAT(wrong("no json"), Contains("not JSON"));
  CHECK_THAT(wrong("[1]"), Contains("not a JSON object"));
  CHECK_THAT(wrong(R"({"text":"a"})"), Contains("time is missing"));
  CHECK_THAT(wrong(R"({"text":"a","time":"yesterday"})"), Contains("not a time: yesterday"));
  CHECK_THAT(wrong(R"({"text":"a","time":5})"), Contains("time is not a string"));
  CHECK_THAT(wrong(R"({"text":" ","time":"2026-02-13T10:00:00Z"})"), Contains("empty"));
  CHECK_THAT(wrong(R"({"text":"a","time":"2026-02-13T10:00:00Z","key":7})"),
             Contains("key is not a string"));
  CHECK_THAT(wrong(R"({"time":"2026-02-13T10:00:00Z","text":")" +
                   std::string(most_entry_bytes + 1, 'x') + "\"}"),
             Contains("the text is too long: 65537 bytes"));
}

TEST_CASE("import: the same entry has the same key, or time, source and text", "[memory]") {
  memory_entry a{"", "s", "", "", "text", at("2026-02-13T10:00:00Z"), true};
  auto b = a;
  b.author = "x";
  CHECK(id_of_import("k", a) == id_of_import("k", b));
  b.text = "other";
  CHECK(id_of_import("k", a) != id_of_import("k", b));
  a.key = b.key = "1";
  CHECK(id_of_import("k", a) == id_of_import("k", b));
  CHECK(id_of_import("k", a) != id_of_import("l", a));
  CHECK(id_of_import("k", a).size() == std::string("ctx_0123456789abcdef").size());
}

TEST_CASE("memory files: which ones are read", "[memory]") {
  for (const char* yes : {"MEMORY.md", "SOUL.md", "archive/2026-02.md", "archive/2026-02.jsonl",
                          "research/a.md", "notes/2026-02-13.md"})
    CHECK(is_memory_file(yes));
  for (const char* no : {"STATE.md", "MEMORY.md.bak", "archive/2026-02.md.bak", "archive/a/b.md",
                         "archive/.x.md", "notes/a.jsonl", "archive/.md", "skills/a.md"})
    CHECK_FALSE(is_memory_file(no));
}

TEST_CASE("memory files: an entry keeps its id and source when it moves to the archive",
          "[memory]") {
  const std::string memory = "# MEMORY\n\n## Facts\n\n### Build\n- 2026-02-01 first\n  goes on\n"
                             "- second\n";
  const auto before = entries("MEMORY.md", memory);
  REQUIRE(before.size() == 2);
  CHECK(before[0].entry.source == "MEMORY.md — Facts — Build");
  CHECK(before[0].entry.section == "Facts — Build");
  CHECK(before[0].entry.text == "2026-02-01 first\ngoes on");
  CHECK(before[0].entry.time == at("2026-02-01T00:00:00Z"));
  CHECK(before[0].entry.has_time);
  CHECK(before[1].entry.time == at("2026-11-29T10:00:00Z"));
  CHECK_FALSE(before[1].entry.has_time);
  std::vector<moved_entry> moved;
  for (const auto& p : split_memory(memory))
    if (p.entry)
      moved.push_back({p.section, p.text});
  const auto archive = add_to_archive("", "MEMORY.md", moved, at("2026-03-01T10:00:00Z"));
  const auto after = entries("archive/2026-03.md", archive);
  REQUIRE(after.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(after[i].id == before[i].id);
    CHECK(after[i].entry.source == before[i].entry.source);
    CHECK(after[i].entry.section == before[i].entry.section);
    CHECK(after[i].entry.text == before[i].entry.text);
  }
  CHECK(after[1].entry.time == at("2026-03-01T00:00:00Z"));
  CHECK_FALSE(after[1].entry.has_time);
}

TEST_CASE("memory files: notes and research are read by item and paragraph", "[memory]") {
  const auto notes = entries("notes/2026-02-13-walk.md",
                             "# Walk\n\nA long\nparagraph.\n\nAnother one.\n\n- an item\n");
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].entry.text == "A long\nparagraph.");
  CHECK(notes[1].entry.text == "Another one.");
  CHECK(notes[2].entry.text == "an item");
  CHECK(notes[2].entry.source == "notes/2026-02-13-walk.md");
  CHECK(notes[0].entry.time == at("2026-02-13T00:00:00Z"));
  CHECK(notes[0].entry.has_time);
  CHECK_FALSE(entries("research/a.md", "x\n")[0].entry.has_time);
}

TEST_CASE("memory files: imported lines that cannot be read are counted", "[memory]") {
  const auto found = entries_of_file(
      "default", "archive/2026-02.jsonl",
      "{\"time\":\"2026-02-13T10:00:00Z\",\"text\":\"a\"}\n\n"
      "{\"time\":\"2026-02-13T10:00:00Z\",\"text\":\"a\"}\n{\"time\":\"2026-02-13T1",
      {});
  CHECK(found.entries.size() == 1);
  CHECK(found.unreadable == 1);
}

TEST_CASE("memory files: any bytes are read", "[memory]") {
  REQUIRE(rc::check([](const std::string& bytes) {
    for (const char* path : {"MEMORY.md", "archive/2026-02.md", "archive/a.jsonl", "notes/a.md"})
      (void)entries(path, bytes);
  }));
}

} // namespace boyd::entry_test
