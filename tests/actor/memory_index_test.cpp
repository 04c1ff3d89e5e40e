#include "knowledge_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace boyd::memory_index_test {

using namespace boyd;
using Catch::Matchers::Contains;
using fixture = test::knowledge_fixture;
using test::entry;

using texts = std::vector<std::string>;

TEST_CASE("memory index: what is appended and imported is recalled", "[memory]") {
  fixture f;
  CHECK(f.recall("anything").empty());
  REQUIRE(
      f.write(append_memory{"default", {}, "Important Facts", "the deploy key is in the vault"}));
  REQUIRE(f.write(import_memory{"default",
                                {entry("Lin carried the pager", "2026-04-12T09:00:00Z", "Lin Yue"),
                                 entry("数据库在夜里备份", "2026-05-01T09:00:00Z")}}));
  CHECK(f.recall("where is the key for deploying?").front() == "the deploy key is in the vault");
  CHECK(f.recall("备份数据库").front() == "数据库在夜里备份");
  CHECK(f.recall("the pager in April").front() == "Lin carried the pager");
  // At an earlier time later entries are unknown.
  CHECK(f.recall("backup", *parse_rfc3339("2026-04-13T00:00:00Z")) ==
        texts{"Lin carried the pager"});
  const auto d = f.describe();
  CHECK(d.entries == 3);
  REQUIRE(d.sections.size() == 1);
  CHECK(d.sections[0].section == "Important Facts");
  CHECK(d.problems.empty());
}

TEST_CASE("memory index: it follows the files, whoever changes them", "[memory]") {
  fixture f;
  f.put("MEMORY.md", "## Facts\n- the gate code is 1234\n- the cat is black\n");
  f.put("notes/2026-02-13.md", "A walk in the woods.\n");
  CHECK(f.recall("gate code").front() == "the gate code is 1234");
  f.put("MEMORY.md", "## Facts\n- the gate code is 9876\n- the cat is black\n");
  CHECK(f.recall("gate code").front() == "the gate code is 9876");
  CHECK(f.describe().entries == 3);
  std::filesystem::remove(f.file("notes/2026-02-13.md"));
  CHECK(f.describe().entries == 2);
  f.restart();
  CHECK(f.describe().entries == 2);
  CHECK(f.recall("gate code").front() == "the gate code is 9876");
}

TEST_CASE("memory index: a folder of many files is followed without reading each", "[memory]") {
  fixture f;
  // Long after the files were written, so that their times say whether they have changed.
  f.clock->jump(
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - f.clock->now()) +
      1h);
  const auto name = [](int i) { return "research/" + std::to_string(10'000 + i) + ".md"; };
  constexpr int pages = 1100;
  for (int i = 0; i < pages; ++i)
    f.put(name(i), "page " + std::to_string(i) + " tells of nothing\n");
  CHECK(f.recall("page 700").front() == "page 700 tells of nothing");
  // Changed in their places, which no folder's time tells: what an answer holds is compared, ...
  f.put(name(700), "page 700 tells of herons\n");
  CHECK(f.recall("page 700").front() == "page 700 tells of herons");
  // ... and the others are looked at in turn.
  f.put(name(1050), "a quagga\n");
  bool is_found = false;
  for (int questions = 0; questions < 3 && !is_found; ++questions)
    is_found = f.recall("quagga").front() == "a quagga";
  CHECK(is_found);
  // What comes and goes is known at once.
  f.put("research/new.md", "an okapi\n");
  CHECK(f.recall("okapi").front() == "an okapi");
  std::filesystem::remove(f.file(name(800)));
  const auto left = f.recall("page 800");
  CHECK(std::ranges::find(left, "page 800 tells of nothing") == left.end());
  CHECK(f.describe().entries == pages);
}

TEST_CASE("memory index: an entry that moves to the archive is the same one", "[memory]") {
  fixture f;
  const auto ids = [&](const std::string& question) {
    std::vector<std::string> all;
    const auto reply = f.ask(recall_memory{"default", {{question, {}}}, 1000, 0});
    REQUIRE(reply);
    for (const auto& r : reply->answers.front())
      all.push_back(r.row.id + " " + format_rfc3339(r.row.time) + " " + r.row.source);
    return all;
  };
  f.clock->advance(std::chrono::hours{24 * 365 * 20}); // behind the files' times
  REQUIRE(f.write(append_memory{"default", {}, "Important Facts", "number 0"}));
  const auto before = ids("number 0");
  REQUIRE(before.size() == 1);
  for (int i = 1; i < 7; ++i)
    REQUIRE(
        f.write(append_memory{"default", {}, "Important Facts", "number " + std::to_string(i)}));
  REQUIRE(f.describe().entries == 7);
  const auto after = ids("number 0");
  CHECK(std::ranges::find(after, before.front()) != after.end());
}

TEST_CASE("memory index: missing, torn or of another version, it is made anew", "[memory]") {
  fixture f;
  REQUIRE(f.write(append_memory{"default", {}, "Facts", "the gate code is 1234"}));
  REQUIRE(f.recall("gate").size() == 1);
  SECTION("missing") {
    f.memory.reset();
    for (const char* ending : {"", "-wal", "-shm"})
      std::filesystem::remove(f.index() + ending);
  }
  SECTION("cut") {
    f.memory.reset();
    std::filesystem::resize_file(f.index(), 5000);
  }
  SECTION("no database") {
    f.memory.reset();
    std::ofstream(f.index(), std::ios::binary) << std::string(20'000, 'x');
  }
  SECTION("empty") {
    f.memory.reset();
    std::filesystem::resize_file(f.index(), 0);
  }
  SECTION("of another version") {
    f.memory.reset();
    CHECK(std::system(("sqlite3 '" + f.index() + "' 'PRAGMA user_version=77'").c_str()) == 0);
  }
  SECTION("another program's") {
    f.memory.reset();
    std::filesystem::remove(f.index());
    CHECK(std::system(("sqlite3 '" + f.index() + "' 'CREATE TABLE t(x)'").c_str()) == 0);
  }
  f.restart();
  CHECK(f.recall("gate") == texts{"the gate code is 1234"});
  CHECK(f.describe().entries == 1);
}

TEST_CASE("memory index: a link in the place of a file or folder is not followed", "[memory]") {
  fixture f;
  f.put("GOAL.md", "- a goal\n");
  std::filesystem::create_symlink(f.file("GOAL.md"), f.file("MEMORY.md"));
  std::filesystem::create_directory(f.home.file("outside"));
  std::ofstream(f.home.file("outside/x.md")) << "secret of another\n";
  std::filesystem::create_symlink(f.home.file("outside"), f.file("notes"));
  CHECK(f.describe().entries == 0);
}

TEST_CASE("memory index: lines that cannot be read are told, also after a restart", "[memory]") {
  fixture f;
  f.put("archive/2026-02.jsonl", "{\"time\":\"2026-02-13T10:00:00Z\",\"text\":\"a\"}\nbroken\n");
  for (int life = 0; life < 2; ++life) {
    const auto d = f.describe();
    CHECK(d.entries == 1);
    REQUIRE(d.problems.size() == 1);
    CHECK_THAT(d.problems[0], Contains("archive/2026-02.jsonl: unreadable lines: 1"));
    f.restart();
  }
}

} // namespace boyd::memory_index_test
