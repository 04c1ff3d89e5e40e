#include "boyd/ports/clock.hpp"
#include "boyd/state/memory_files.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/repository.hpp"
#include "support/sim/seeded_entropy.hpp"

#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

namespace boyd::memory_files_test {

using namespace boyd;
using namespace boyd::state;
using Catch::Matchers::Contains;

namespace {

class hand_clock final : public clock_port {
 public:
  utc_time now() const override { return *parse_rfc3339("2026-03-01T10:00:00Z") + passed; }
  steady_time steady() const override { return steady_time{passed}; }

  milliseconds passed{0};
};

constexpr const char* home = "/home/kernel/default";

memory_options tight() {
  return {"default", {{"A", {2, 60}}, {"B", {1, 80}}}, {}};
}

/// One process's life on the disk.
struct life {
  explicit life(sim::sim_disk& disk, const clock_port& c, sim::sim_repositories& repositories)
      : store(disk, repositories, const_cast<clock_port&>(c), {home, {}, true, true}),
        memory(store, disk, tight()), clock(c) {}

  result<memory_edit> append(const std::string& section, const std::string& text) {
    return memory.append({}, section, text, clock.now());
  }

  versioned_store store;
  memory_files memory;
  const clock_port& clock;
};

struct world {
  hand_clock clock;
  sim::sim_disk disk{&clock};
  sim::sim_repositories repositories{disk};
  life first{disk, clock, repositories};

  world() { REQUIRE(first.store.init()); }

  std::string on_disk(const std::string& file) const {
    const auto* content = disk.look(std::string(home) + "/" + file).content;
    return content == nullptr ? "(none)" : *content;
  }
};

/// All that is remembered, wherever it stands.
std::string everything(const sim::sim_disk& disk) {
  std::string all;
  for (const auto& [path, content] : disk.snapshot())
    if (memory::is_memory_file(path.substr(std::min(path.size(), std::string(home).size() + 1))))
      all += content;
  return all;
}

/// Texts of imported lines; a line that cannot be read fails.
std::multiset<std::string> imported(const sim::sim_disk& disk) {
  std::multiset<std::string> texts;
  for (const auto& [path, content] : disk.snapshot()) {
    if (!path.ends_with(".jsonl"))
      continue;
    const auto found = memory::entries_of_file("default", "archive/x.jsonl", content, {});
    CHECK(found.unreadable == 0);
    for (const auto& line : found.entries)
      texts.insert(line.entry.text);
  }
  return texts;
}

memory::memory_entry entry(const std::string& text, const char* time = "2026-02-13T10:00:00Z") {
  return {{}, "s", "a", {}, text, *parse_rfc3339(time), true};
}

} // namespace

TEST_CASE("memory: an entry goes to the file of its section", "[memory]") {
  world w;
  const auto done = w.first.append("A", "one");
  REQUIRE(done);
  CHECK(done->file == "MEMORY.md");
  CHECK(done->changed);
  CHECK(w.on_disk("MEMORY.md") == "## A\n- one\n");
  CHECK(w.first.append("My Thoughts", "two")->file == "SOUL.md");
  w.disk.put(std::string(home) + "/SOUL.md", "## A\n");
  CHECK(w.first.append("A", "three")->file == "MEMORY.md");
  w.disk.put(std::string(home) + "/SOUL.md", "## Only here\n");
  CHECK(w.first.append("only here", "four")->file == "SOUL.md");
  CHECK_FALSE(w.first.append("A", " one\n")->changed);
  const auto bad = w.first.append("", "x");
  REQUIRE_FALSE(bad);
  CHECK_THAT(to_string(bad.error()), Contains("use a name such"));
  CHECK_FALSE(w.first.append("A", " "));
  CHECK_FALSE(w.first.append("A", std::string(memory::most_entry_bytes + 1, 'x')));
  CHECK_FALSE(w.first.memory.append("GOAL.md", "A", "x", w.clock.now()));
}

TEST_CASE("memory: what is over a cap stands in the archive, and nothing of the rest moves",
          "[memory]") {
  world w;
  for (const char* text : {"one", "two", "three"})
    REQUIRE(w.first.append("A", text));
  CHECK(w.on_disk("MEMORY.md") == "## A\n- two\n- three\n");
  CHECK(w.on_disk("archive/2026-03.md") ==
        "# Archive 2026-03\n\n## 2026-03-01 MEMORY.md — A\n- one\n");
  const std::string longer(200, 'x');
  const auto done = w.first.append("B", longer);
  REQUIRE(done);
  REQUIRE(done->notes.size() == 1);
  CHECK_THAT(w.on_disk("research/" + done->notes[0]), Contains(longer));
  CHECK_THAT(w.on_disk("MEMORY.md"), Contains("→ research/" + done->notes[0]));
  // A person has written into the note; the same text comes again.
  w.disk.put(std::string(home) + "/research/" + done->notes[0],
             w.on_disk("research/" + done->notes[0]) + "mine\n");
  REQUIRE(w.first.append("B", "short"));
  CHECK(w.first.append("B", longer)->changed);
  CHECK_THAT(w.on_disk("research/" + done->notes[0]), Contains("mine"));
}

TEST_CASE("memory: compact says what it would move, and then moves it", "[memory]") {
  world w;
  w.disk.put(std::string(home) + "/MEMORY.md", "## A\n- 1\n- 2\n- 3\n- 4\n");
  const auto would = w.first.memory.compact("MEMORY.md", true, w.clock.now());
  REQUIRE(would);
  CHECK(would->changed);
  CHECK(would->archived == 2);
  CHECK(w.on_disk("MEMORY.md") == "## A\n- 1\n- 2\n- 3\n- 4\n");
  CHECK(w.on_disk("archive/2026-03.md") == "(none)");
  REQUIRE(w.first.memory.compact("MEMORY.md", false, w.clock.now()));
  CHECK(w.on_disk("MEMORY.md") == "## A\n- 3\n- 4\n");
  CHECK_FALSE(w.first.memory.compact("MEMORY.md", false, w.clock.now())->changed);
}

TEST_CASE("memory: importing again imports nothing twice", "[memory]") {
  world w;
  const std::vector<memory::memory_entry> all{entry("one"), entry("two", "2026-03-01T10:00:00Z"),
                                              entry("one")};
  auto done = w.first.memory.add_imported(all);
  REQUIRE(done);
  CHECK(done->imported == 2);
  CHECK(done->skipped == 1);
  CHECK_THAT(w.on_disk("archive/2026-02.jsonl"), Contains("one"));
  CHECK_THAT(w.on_disk("archive/2026-03.jsonl"), Contains("two"));
  CHECK(w.first.memory.add_imported(all)->skipped == 3);
  life second(w.disk, w.clock, w.repositories);
  CHECK(second.memory.add_imported(all)->skipped == 3);
  // The same key in another month; and a file that somebody else has changed.
  auto keyed = entry("three");
  keyed.key = "k";
  CHECK(second.memory.add_imported({keyed})->imported == 1);
  keyed.time = *parse_rfc3339("2020-01-01T00:00:00Z");
  CHECK(second.memory.add_imported({keyed})->skipped == 1);
  CHECK(w.first.memory.add_imported({keyed})->skipped == 1);
}

TEST_CASE("memory: a link in the place of a folder is refused", "[memory]") {
  world w;
  w.disk.put_symlink(std::string(home) + "/archive");
  REQUIRE(w.first.append("A", "one"));
  REQUIRE(w.first.append("A", "two"));
  const auto done = w.first.append("A", "three");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::refused);
  CHECK(w.on_disk("MEMORY.md") == "## A\n- one\n- two\n");
  CHECK_FALSE(w.first.memory.add_imported({entry("x")}));
}

TEST_CASE("memory: power goes at every call of an append, nothing is lost", "[memory]") {
  const std::string longer = "a text that is longer than eighty characters, so that its whole "
                             "goes to research and a pointer stays";
  for (std::uint64_t call = 0;; ++call) {
    INFO("call " << call);
    world w;
    std::vector<std::string> acknowledged;
    for (const char* text : {"one", "two"}) {
      REQUIRE(w.first.append("A", text));
      acknowledged.emplace_back(text);
    }
    REQUIRE(w.first.append("B", "b"));
    acknowledged.emplace_back("- b");
    const auto begin = w.disk.calls();
    w.disk.set_fault_plan([&](const sim::disk_call& c) {
      return c.number >= begin + call ? sim::disk_fault::io_error : sim::disk_fault::none;
    });
    const bool third = w.first.append("A", "three").has_value();
    const bool fourth = third && w.first.append("B", longer).has_value();
    const bool all_done = fourth && w.disk.calls() < begin + call;
    if (third)
      acknowledged.emplace_back("three");
    if (fourth)
      acknowledged.emplace_back(longer);
    w.disk.clear_faults();
    sim::seeded_entropy random(call);
    w.disk.crash(random);
    const auto text = everything(w.disk);
    for (const auto& a : acknowledged) {
      INFO(a << "\n" << text);
      CHECK(text.find(a) != std::string::npos);
    }
    // The next life goes on from there, and the second try changes nothing more.
    life second(w.disk, w.clock, w.repositories);
    REQUIRE(second.store.init());
    REQUIRE(second.append("A", "three"));
    REQUIRE(second.append("B", longer));
    const auto after = everything(w.disk);
    for (const char* a : {"one", "two", "- b", "three"})
      CHECK(after.find(a) != std::string::npos);
    CHECK(after.find(longer) != std::string::npos);
    CHECK(after.find("- one\n", after.find("- one\n") + 1) == std::string::npos);
    if (all_done)
      break;
  }
}

TEST_CASE("memory: power goes at every call of an import, no entry is lost or there twice",
          "[memory]") {
  for (std::uint64_t call = 0;; ++call) {
    INFO("call " << call);
    world w;
    REQUIRE(w.first.memory.add_imported({entry("one"), entry("two", "2026-03-01T10:00:00Z")}));
    const std::vector<memory::memory_entry> more{entry("three"),
                                                 entry("four", "2026-03-01T10:00:00Z"),
                                                 entry("five", "2026-04-01T10:00:00Z")};
    const auto begin = w.disk.calls();
    w.disk.set_fault_plan([&](const sim::disk_call& c) {
      return c.number >= begin + call ? sim::disk_fault::short_write : sim::disk_fault::none;
    });
    const bool done = w.first.memory.add_imported(more).has_value();
    const bool all_done = done && w.disk.calls() < begin + call;
    w.disk.clear_faults();
    sim::seeded_entropy random(call);
    w.disk.crash(random);
    life second(w.disk, w.clock, w.repositories);
    REQUIRE(second.store.init());
    const auto again = second.memory.add_imported(more);
    REQUIRE(again);
    CHECK(again->imported + again->skipped == 3);
    if (done)
      CHECK(again->imported == 0);
    CHECK(imported(w.disk) == std::multiset<std::string>{"one", "two", "three", "four", "five"});
    if (all_done)
      break;
  }
}

TEST_CASE("memory files: daily notes that are no longer warm move to the archive, whole",
          "[memory]") {
  world w;
  const auto put = [&](const std::string& name, const std::string& text) {
    w.disk.put(std::string(home) + "/notes/" + name, text);
  };
  put("2026-01-29.md", "- the oldest\n");
  put("2026-01-30.md", "- thirty days ago\n");
  put("ideas.md", "- of no day\n");
  put("2026-13-01.md", "- no date\n");
  const auto moved = w.first.memory.rotate_notes(30, false, w.clock.now());
  REQUIRE(moved);
  CHECK(*moved == 1);
  CHECK(w.on_disk("archive/note-2026-01-29.md") == "- the oldest\n");
  CHECK(w.on_disk("notes/2026-01-29.md") == "(none)");
  CHECK(w.on_disk("notes/2026-01-30.md") == "- thirty days ago\n");
  CHECK(w.on_disk("notes/ideas.md") == "- of no day\n");
  CHECK(w.on_disk("notes/2026-13-01.md") == "- no date\n");
  // One that comes again, as after a crash in between, is not doubled; another text is added.
  put("2026-01-29.md", "- the oldest\n");
  CHECK(w.first.memory.rotate_notes(30, false, w.clock.now()).value() == 1);
  put("2026-01-29.md", "- written later\n");
  CHECK(w.first.memory.rotate_notes(30, false, w.clock.now()).value() == 1);
  CHECK(w.on_disk("archive/note-2026-01-29.md") == "- the oldest\n- written later\n");
  // Its entries are the same ones.
  const auto before = memory::entries_of_file("k", "notes/2026-01-29.md", "- the oldest\n", {});
  const auto after =
      memory::entries_of_file("k", "archive/note-2026-01-29.md", "- the oldest\n", {});
  REQUIRE(before.entries.size() == 1);
  REQUIRE(after.entries.size() == 1);
  CHECK(after.entries[0].id == before.entries[0].id);
  CHECK(after.entries[0].entry.time == *parse_rfc3339("2026-01-29T00:00:00Z"));
}

} // namespace boyd::memory_files_test
