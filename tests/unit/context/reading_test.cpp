#include "boyd/context/reading.hpp"
#include "boyd/core/text.hpp"
#include "src/adapters/posix/confined_files.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace boyd::reading_test {

using namespace boyd::context;
using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// A workspace of real files, read as a worker does.
struct workspace {
  temp_dir directory;
  std::shared_ptr<confined_files> files = adapters::make_confined_files({});
  reading_order order;

  workspace() { order.root = directory.path(); }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = directory.file(name);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  std::vector<offered_item> read(const std::vector<std::string>& references) {
    order.references.clear();
    for (const auto& r : references)
      order.references.push_back({parse_declared(r).value(), origin::declared, false, false, true});
    return read_references(order, *files);
  }

  offered_item one(const std::string& reference) {
    const auto all = read({reference});
    REQUIRE(all.size() == 1);
    return all.front();
  }
};

std::vector<std::string> paths_of(const std::vector<offered_item>& items) {
  std::vector<std::string> all;
  for (const auto& i : items)
    all.push_back(i.path);
  return all;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("reading: a file, its lines, and the same thing once", "[context]") {
  workspace w;
  w.write("docs/a.md", "one\ntwo\nthree\n");
  const auto whole = w.one("@docs/a.md");
  CHECK(whole.content == "one\ntwo\nthree\n");
  CHECK(whole.type == item_type::file);
  CHECK(whole.content_hash.size() == 64);
  CHECK(whole.id.starts_with("ctx_"));
  CHECK(w.one("@docs/a.md:2").content == "two\n");
  CHECK(w.one("@docs/a.md:2-9").content == "two\nthree\n");
  CHECK(w.one("@docs/a.md:2-3").path == "docs/a.md:2-3");
  CHECK_THAT(w.one("@docs/a.md:4").failure, Contains("only 3 lines"));
  CHECK(w.read({"@docs/a.md", "@./docs//a.md", "@" + w.directory.file("docs/a.md")}).size() == 1);
  w.write("docs/a.md", "changed\n");
  const auto later = w.one("@docs/a.md");
  CHECK(later.id == whole.id);
  CHECK(later.content_hash != whole.content_hash);
}

TEST_CASE("reading: what cannot be read is an item with the reason", "[context]") {
  workspace w;
  w.write("binary", std::string("a\0b", 3));
  w.write("large", std::string(w.order.limits.file_bytes + 1, 'x'));
  w.write("dir/a", "a");
  CHECK_THAT(w.one("@gone.md").failure, Contains("no such file"));
  CHECK_THAT(w.one("@binary").failure, Contains("binary"));
  CHECK_THAT(w.one("@large").failure, Contains("at most 1048576"));
  CHECK_THAT(w.one("@dir").failure, Contains("#dir"));
  CHECK_THAT(w.one("#binary").failure, Contains("@binary"));
  CHECK_FALSE(w.one("@../etc/passwd").failure.empty());
  CHECK_FALSE(w.one("@/etc/passwd").failure.empty());
  for (const auto& i : w.read({"@gone.md", "@binary", "@/etc/passwd"}))
    CHECK(i.content.empty());
}

TEST_CASE("reading: no link leads out of the workspace", "[context]") {
  workspace w;
  const temp_dir outside;
  std::ofstream(outside.file("secret")) << "secret";
  fs::create_symlink(outside.file("secret"), w.directory.file("link"));
  fs::create_directory_symlink(outside.path(), w.directory.file("out"));
  w.write("inside.md", "inside");
  fs::create_symlink("inside.md", w.directory.file("good"));
  CHECK_FALSE(w.one("@link").failure.empty());
  CHECK_FALSE(w.one("@out/secret").failure.empty());
  CHECK_FALSE(w.one("#out").failure.empty());
  CHECK(w.one("@good").content == "inside");
  const auto all = w.read({"#."});
  CHECK(paths_of(all) == texts{".", "inside.md"});
  CHECK_THAT(all[0].content, Contains("link  a symbolic link, not followed"));
}

TEST_CASE("reading: the policy is asked about the name and about what it leads to", "[context]") {
  workspace w;
  w.write("private/key", "k");
  fs::create_symlink("private/key", w.directory.file("open"));
  w.write("a.md", "a");
  w.order.forbids = [](const std::string&, const std::string& where) {
    return where.starts_with("private") ? std::optional<std::string>("rule 1") : std::nullopt;
  };
  CHECK(w.one("@private/key").failure == "rule 1");
  CHECK(w.one("@open").failure == "rule 1");
  const auto all = w.read({"#."});
  CHECK(paths_of(all) == texts{".", "a.md"});
  CHECK_THAT(all[0].content, Contains("private/  not read: rule 1"));
  w.order.forbids = [](const std::string& tool, const std::string&) {
    return tool == "read_file" ? std::optional<std::string>("rule 2") : std::nullopt;
  };
  CHECK_THAT(w.read({"#."})[0].content, Contains("private/key  1 bytes, not read: rule 2"));
}

TEST_CASE("reading: a directory is its listing and its text files, without what git ignores",
          "[context]") {
  workspace w;
  w.write(".gitignore", "*.log\n/build/\n!keep.log\n# a comment\ncache*/\ndeep/**/x.txt\n");
  w.write("src/a.cpp", "int a;\n");
  w.write("src/a.log", "noise");
  w.write("src/keep.log", "kept");
  w.write("src/build/x", "not anchored here");
  w.write("build/out", "ignored");
  w.write("src/cache1/x", "ignored");
  w.write("src/picture.bin", std::string("\0\1", 2));
  w.write("src/.gitignore", "local.txt\n");
  w.write("src/local.txt", "ignored");
  w.write(".git/config", "never");
  w.write("deep/1/2/x.txt", "ignored");
  w.write("deep/1/y.txt", "y");
  const auto src = w.read({"#src"});
  CHECK(paths_of(src) ==
        texts{"src", "src/.gitignore", "src/a.cpp", "src/build/x", "src/keep.log"});
  CHECK(src[0].type == item_type::directory);
  CHECK_THAT(src[0].content,
             Contains("a.cpp  7 bytes\n") &&
                 Contains("picture.bin  2 bytes, not read: this is a binary file") &&
                 Contains("[3 entries ignored by .gitignore]"));
  CHECK(paths_of(w.read({"#."})) == texts{".", ".gitignore", "deep/1/y.txt", "src/.gitignore",
                                          "src/a.cpp", "src/build/x", "src/keep.log"});
  // What is named itself is not ignored.
  CHECK(w.one("@src/a.log").content == "noise");
}

TEST_CASE("reading: limits of a directory are told in its listing", "[context]") {
  workspace w;
  w.order.limits.directory_files = 2;
  w.order.limits.directory_depth = 2;
  w.order.limits.directory_bytes = 10;
  w.order.limits.listed_entries = 6;
  w.write("a", "1234567890123");
  w.write("b", "1");
  w.write("c", "2");
  w.write("d", "3");
  w.write("e/f/g", "deep");
  w.write("h", "4");
  w.write("i", "5");
  const auto all = w.read({"#."});
  CHECK(paths_of(all) == texts{".", "b", "c"});
  CHECK_THAT(all[0].content,
             Contains("a  13 bytes, not read: 10 bytes of text per directory at most") &&
                 Contains("d  1 bytes, not read: 2 files at most") &&
                 Contains("e/f/  not read: more than 2 directory levels") &&
                 Contains("[2 more entries are not listed]"));
}

TEST_CASE("reading: too many items are told of", "[context]") {
  workspace w;
  w.order.limits.items = 2;
  w.write("a", "a");
  w.write("b", "b");
  w.write("c", "c");
  const auto all = w.read({"@a", "@b", "@c"});
  REQUIRE(all.size() == 3);
  CHECK(all[2].failure == "a run reads at most 2 items");
}

TEST_CASE("reading: secrets are taken out, and bytes that are no text", "[context]") {
  workspace w;
  w.write("a", "the key is hunter2 \xFF.\n");
  w.order.hide = [](std::string text) {
    const auto at = text.find("hunter2");
    return at == std::string::npos ? text : text.replace(at, 7, "[redacted]");
  };
  CHECK(w.one("@a").content == "the key is [redacted] \xEF\xBF\xBD.\n");
}

TEST_CASE("reading: a plain word is a reference when something has its name", "[context]") {
  workspace w;
  w.write("Makefile", "all:\n");
  w.order.references = references_in("@Makefile and @nobody, #Makefile and @gone.md", true);
  const auto all = read_references(w.order, *w.files);
  CHECK(paths_of(all) == texts{"Makefile", "gone.md"});
  const auto fates =
      judge_candidates("@Makefile @nobody @gone.md me@x.org `@code`", w.order, *w.files);
  REQUIRE(fates.size() == 4);
  CHECK(fates[0].counts);
  CHECK(fates[0].why.empty());
  CHECK_FALSE(fates[1].counts);
  CHECK_THAT(fates[1].why, Contains("no such file or directory"));
  CHECK(fates[2].counts);
  CHECK_THAT(fates[2].why, Contains("no such file"));
  CHECK_FALSE(fates[3].counts);
  CHECK_THAT(fates[3].why, Contains("e-mail"));
}

TEST_CASE("reading: a command is an item without content until it has run", "[context]") {
  workspace w;
  auto item = w.one("@!git log -5");
  CHECK(item.type == item_type::runtime);
  CHECK(item.path == "git log -5");
  CHECK(item.frozen);
  CHECK(item.failure.empty());
  take_output(item, "abc\n", from_unix_ms(5));
  CHECK(item.content == "abc\n");
  CHECK(item.time == from_unix_ms(5));
  CHECK_FALSE(w.one("@!a | b").failure.empty());
}

} // namespace boyd::reading_test
