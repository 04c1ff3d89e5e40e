#include "boyd/files/atomic_file.hpp"
#include "confined_fixture.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::confined_files_test {

using namespace boyd;
using boyd::test::confined_fixture;
using boyd::test::plenty;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string code_of(const result<T>& r) {
  return r ? "ok" : std::string(name_of(r.error().code));
}

std::size_t entries_in(const std::string& path) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator{}));
}

} // namespace

TEST_CASE("confined files are read in parts, written whole and listed", "[confined]") {
  const bool without_openat2 = GENERATE(false, true);
  confined_fixture f(without_openat2);
  REQUIRE(f.files->write(f.root, "new/way/file.txt", "0123456789"));
  const auto part = f.files->read(f.root, "new/way/file.txt", 3, 4);
  REQUIRE(part);
  CHECK(part->text == "3456");
  CHECK(part->size == 10);
  CHECK(part->where == "new/way/file.txt");
  CHECK(f.files->read(f.root, f.root + "/new/./way/../way/file.txt", 8, plenty)->text == "89");
  CHECK(f.files->read(f.root, "new/way/file.txt", 100, plenty)->text.empty());
  CHECK(code_of(f.files->read(f.root, "none", 0, 1)) == "not_found");
  CHECK(code_of(f.files->read(f.root, "none/none", 0, 1)) == "not_found");
  CHECK(code_of(f.files->read(f.root, "src", 0, 1)) == "invalid_argument");
  CHECK(code_of(f.files->write(f.root, "src", "x")) == "invalid_argument");
  CHECK(code_of(f.files->write(f.root, ".", "x")) == "invalid_argument");
  CHECK(code_of(f.files->write(f.root, "src/deep/f/x", "x")) == "io_error");
  CHECK(code_of(f.files->read("relative", "x", 0, 1)) == "invalid_argument");
  CHECK(code_of(f.files->read(f.dir.file("nowhere"), "x", 0, 1)) == "not_found");
  CHECK(f.files->read(f.root, "none", 0, 1).error().where == "none");

  const auto all = f.files->list(f.root, ".", 10);
  REQUIRE(all);
  REQUIRE(all->entries.size() == 2);
  CHECK(all->entries[0].name == "new");
  CHECK(all->entries[0].kind == file_kind::directory);
  CHECK(f.files->list(f.root, "new/way", 10)->entries[0].size == 10);
  const auto first = f.files->list(f.root, ".", 1);
  CHECK(first->entries.size() == 1);
  CHECK(first->total == 2);
  CHECK(code_of(f.files->list(f.root, "src/deep/f", 10)) == "invalid_argument");

  const auto place = f.files->find(f.root, "src/deep");
  REQUIRE(place);
  CHECK(place->kind == file_kind::directory);
  CHECK(place->where == "src/deep");
  CHECK(place->absolute == fs::canonical(f.root).string() + "/src/deep");
}

TEST_CASE("case 50 patch-base-moved: a file is replaced if it is what it was", "[confined]") {
  confined_fixture f;
  std::vector<std::string> seen;
  const auto expecting = [&](const std::string& what) {
    return [&seen, what](const std::string* now) {
      seen.push_back(now == nullptr ? "nothing" : *now);
      return seen.back() == what;
    };
  };
  CHECK(code_of(f.files->write_over(f.root, "plan", "x", expecting("before"))) == "conflict");
  CHECK_FALSE(fs::exists(f.root + "/plan"));
  REQUIRE(f.files->write_over(f.root, "plan", "before", expecting("nothing")));
  CHECK(code_of(f.files->write_over(f.root, "plan", "mine", expecting("nothing"))) == "conflict");
  CHECK(f.get(f.root + "/plan") == "before");
  REQUIRE(f.files->write_over(f.root, "plan", "mine", expecting("before")));
  CHECK(f.get(f.root + "/plan") == "mine");
  CHECK(seen == std::vector<std::string>{"nothing", "nothing", "before", "before"});
  CHECK(entries_in(f.root) == 2); // nothing temporary stays
  f.put(f.root + "/empty", "");
  REQUIRE(f.files->write_over(f.root, "empty", "full", expecting("")));
  fs::create_symlink(f.dir.file("outside/secret"), f.root + "/link");
  CHECK(code_of(f.files->write_over(f.root, "link", "x", expecting("SECRET"))) == "refused");
  // One that has grown beyond all measure (here: a hole) is not read into memory.
  constexpr std::uintmax_t terabyte = std::uintmax_t{1} << 40;
  fs::resize_file(f.root + "/plan", terabyte);
  CHECK(code_of(f.files->write_over(f.root, "plan", "x", expecting("mine"))) == "limit_exceeded");
  CHECK(fs::file_size(f.root + "/plan") == terabyte);
}

TEST_CASE("a file that is replaced keeps its permissions, a new one is private", "[confined]") {
  confined_fixture f;
  REQUIRE(f.files->write(f.root, "new", "x"));
  CHECK((fs::status(f.root + "/new").permissions() & fs::perms::mask) == fs::perms{0600});
  f.put(f.root + "/run.sh", "old");
  ::chmod((f.root + "/run.sh").c_str(), 04755);
  REQUIRE(f.files->write(f.root, "run.sh", "new"));
  CHECK((fs::status(f.root + "/run.sh").permissions() & fs::perms::mask) == fs::perms{0755});
  CHECK(f.get(f.root + "/run.sh") == "new");
  CHECK(entries_in(f.root) == 3);
  if (::geteuid() != 0) { // whom nothing is read-only to
    ::chmod((f.root + "/run.sh").c_str(), 0444);
    CHECK(code_of(f.files->write(f.root, "run.sh", "newer")) == "refused");
  }
}

TEST_CASE("case 48 patch-symlink: links lead nowhere outside, and nothing is written through one",
          "[confined]") {
  const bool without_openat2 = GENERATE(false, true);
  confined_fixture f(without_openat2);
  fs::create_symlink(f.dir.file("outside/secret"), f.root + "/absolute");
  fs::create_symlink("../outside/secret", f.root + "/relative");
  fs::create_directory_symlink("../outside", f.root + "/out");
  fs::create_directory_symlink("../../outside", f.root + "/src/out");
  fs::create_symlink("loop", f.root + "/loop");
  fs::create_symlink("../outside/new", f.root + "/dangling");
  fs::create_directory_symlink("/proc/self/root", f.root + "/magic");
  for (const auto* path :
       {"absolute", "relative", "out/secret", "src/out/secret", "loop", "magic/etc/passwd",
        "magic" /* the directory itself */, "dangling", "out/new"}) {
    INFO(path);
    const auto text = f.files->read(f.root, path, 0, plenty);
    CHECK(code_of(text) == "refused");
    CHECK(code_of(f.files->list(f.root, path, 10)) == "refused");
    CHECK(code_of(f.files->find(f.root, path)) == "refused");
    CHECK(code_of(f.files->write(f.root, path, "x")) == "refused");
  }
  CHECK(f.get(f.dir.file("outside/secret")) == "SECRET");
  CHECK(entries_in(f.dir.file("outside")) == 2);

  fs::create_directory_symlink("src/deep", f.root + "/near");
  CHECK(code_of(f.files->write(f.root, "near/f", "x")) == "refused");
  CHECK(f.get(f.root + "/src/deep/f") == "inside");
  const auto near = f.files->read(f.root, "near/f", 0, plenty);
  if (without_openat2) {
    CHECK(code_of(near) == "refused");
  } else {
    REQUIRE(near);
    CHECK(near->text == "inside");
    CHECK(near->where == "src/deep/f"); // not where it was asked for
    CHECK(f.files->list(f.root, "near", 10)->where == "src/deep");
  }
}

TEST_CASE("case 48 patch-traversal: neither .. nor a foreign path leaves the workspace",
          "[confined]") {
  confined_fixture f;
  for (const auto& path :
       {std::string("../outside/secret"), std::string("src/../../outside/secret"),
        f.dir.file("outside/secret"), f.root + "/../outside/secret", std::string("a\0b", 3)}) {
    INFO(path);
    CHECK(code_of(f.files->read(f.root, path, 0, plenty)) == "refused");
    CHECK(code_of(f.files->write(f.root, path, "x")) == "refused");
    CHECK(code_of(f.files->list(f.root, path, 1)) == "refused");
  }
  CHECK(f.get(f.dir.file("outside/secret")) == "SECRET");
}

TEST_CASE("case 48 patch-hardlink: a hard link is broken, not written through", "[confined]") {
  confined_fixture f;
  fs::create_hard_link(f.dir.file("outside/secret"), f.root + "/hard");
  REQUIRE(f.files->write(f.root, "hard", "mine"));
  CHECK(f.get(f.root + "/hard") == "mine");
  CHECK(f.get(f.dir.file("outside/secret")) == "SECRET");
}

TEST_CASE("case 48 patch-dotgit, patch-case-twin, patch-gitattributes: refused, nothing written",
          "[confined]") {
  confined_fixture f;
  fs::create_directories(f.root + "/.git/hooks");
  fs::create_directory_symlink(".git/hooks", f.root + "/hooks");
  f.put(f.root + "/.git/config", "[core]");
  for (const auto* path :
       {".git/hooks/pre-commit", ".git", ".GIT/config", ".git /config", "git~1/config",
        ".g\xE2\x80\x8Cit/config", "sub/.git/config", ".git/config", "hooks/pre-commit",
        ".gitattributes", "src/.GITATTRIBUTES", ".gitmodules", ".gitconfig", "a\nb"}) {
    INFO(path);
    CHECK(code_of(f.files->write(f.root, path, "x")) == "refused");
  }
  CHECK(entries_in(f.root) == 3);
  CHECK(entries_in(f.root + "/src") == 1);
  CHECK(entries_in(f.root + "/.git/hooks") == 0);
  CHECK(f.files->read(f.root, ".git/config", 0, plenty)->text == "[core]");
}

TEST_CASE("a device, a pipe or a socket is not opened", "[confined]") {
  confined_fixture f;
  REQUIRE(::mkfifo((f.root + "/pipe").c_str(), 0600) == 0);
  CHECK(code_of(f.files->read(f.root, "pipe", 0, 1)) == "invalid_argument"); // and does not block
  CHECK(code_of(f.files->write(f.root, "pipe", "x")) == "invalid_argument");
  CHECK(f.files->find(f.root, "pipe")->kind == file_kind::other);
}

TEST_CASE("the node's home is guarded wherever the workspace begins", "[confined]") {
  confined_fixture f;
  const auto kernel = f.home + "/kernel/default";
  fs::create_directories(kernel);
  fs::create_directories(f.home + "/run");
  f.put(f.home + "/run/token", "TOKEN");
  f.put(f.home + "/boyd.yaml", "KEY");
  f.put(kernel + "/STATE.md", "state");
  // The kernel's own home: how an objective changes.
  REQUIRE(f.files->write(kernel, "GOAL.md", "a new goal"));
  CHECK(f.get(kernel + "/GOAL.md") == "a new goal");
  REQUIRE(f.files->write(kernel, "notes/2026-01-01.md", "note"));
  for (const auto* path : {"STATE.md", "state.MD", "INIT.md", "SYSTEM_PROMPT.md", "STATE.md.bak",
                           "archive/2026-01.md"})
    CHECK(code_of(f.files->write(kernel, path, "x")) == "refused");
  CHECK(f.get(kernel + "/STATE.md") == "state");
  CHECK_FALSE(fs::exists(kernel + "/archive"));
  CHECK(f.files->read(kernel, "STATE.md", 0, plenty)->text == "state");
  // From above, and through another name of the home.
  fs::create_directory_symlink(f.home, f.dir.file("alias"));
  for (const auto& [root, below] :
       {std::pair(f.dir.path(), std::string("home/")), std::pair(f.home, std::string()),
        std::pair(f.dir.file("alias"), std::string())}) {
    CHECK(code_of(f.files->read(root, below + "run/token", 0, plenty)) == "refused");
    CHECK(code_of(f.files->read(root, below + "boyd.yaml", 0, plenty)) == "refused");
    CHECK(code_of(f.files->list(root, below + "run", 10)) == "refused");
    CHECK(code_of(f.files->write(root, below + "boyd.yaml", "x")) == "refused");
    CHECK(code_of(f.files->write(root, below + "knowledge/graph.jsonl", "x")) == "refused");
    CHECK(code_of(f.files->write(root, below + "kernel/default/STATE.md", "x")) == "refused");
    CHECK(f.files->write(root, below + "kernel/default/SOUL.md", "soul"));
    std::string seen;
    REQUIRE(f.files->walk(
        root, ".", {}, [](const std::string&) { return true; },
        [&](const std::string&, std::string_view text) {
          seen += text;
          return true;
        }));
    CHECK(seen.find("a new goal") != std::string::npos);
    CHECK(seen.find("TOKEN") == std::string::npos);
    CHECK(seen.find("KEY") == std::string::npos);
  }
  CHECK_FALSE(fs::exists(f.home + "/knowledge"));
}

TEST_CASE("a walk goes everywhere inside, in order, and within its limits", "[confined]") {
  const bool without_openat2 = GENERATE(false, true);
  confined_fixture f(without_openat2);
  fs::create_directories(f.root + "/.git");
  f.put(f.root + "/.git/config", "git");
  f.put(f.root + "/a", "A");
  f.put(f.root + "/z", std::string(100, 'z'));
  fs::create_directory_symlink("../outside", f.root + "/out");
  fs::create_directory_symlink("..", f.root + "/src/up");
  REQUIRE(::mkfifo((f.root + "/pipe").c_str(), 0600) == 0);
  std::vector<std::string> seen;
  const auto walk = [&](const std::string& path, const confined_files::walk_limits& limits) {
    seen.clear();
    return f.files->walk(
        f.root, path, limits, [](const std::string& where) { return where != "unwanted"; },
        [&](const std::string& where, std::string_view) {
          seen.push_back(where);
          return true;
        });
  };
  f.put(f.root + "/unwanted", "x");
  auto end = walk(".", {});
  REQUIRE(end);
  CHECK(seen == std::vector<std::string>{"a", "src/deep/f", "z"});
  CHECK(end->files == 3);
  CHECK(end->bytes == 107);
  CHECK(end->cut.empty());
  REQUIRE(walk("src", {}));
  CHECK(seen == std::vector<std::string>{"src/deep/f"});
  REQUIRE(walk("a", {}));
  CHECK(seen == std::vector<std::string>{"a"});
  end = walk(".", {.file_bytes = 50});
  CHECK(end->too_large == 1);
  CHECK(seen.size() == 2);
  CHECK(walk(".", {.entries = 2})->cut == "2 entries");
  CHECK(walk(".", {.depth = 1})->cut == "1 directory levels");
  CHECK(seen == std::vector<std::string>{"a", "z"});
  CHECK(walk(".", {.bytes = 1})->cut == "1 bytes read");
  CHECK_FALSE(walk(".", {.time = 0ms})->cut.empty());
  CHECK(code_of(walk("pipe", {})) == "invalid_argument");
  CHECK(code_of(walk("out", {})) == "refused");
  std::size_t visits = 0;
  REQUIRE(f.files->walk(
      f.root, ".", {}, [](const std::string&) { return true; },
      [&](const std::string&, std::string_view) { return ++visits == 0; }));
  CHECK(visits == 1);
}

TEST_CASE("case 49 patch-half-applied: a kill at any moment leaves the old content or the new",
          "[confined]") {
  confined_fixture f;
  const auto kills = boyd::test::knob("BOYD_KILLS", 20);
  const std::string contents[] = {std::string(300'000, 'A'), std::string(500'000, 'B')};
  f.put(f.root + "/file", contents[0]);
  for (std::int64_t round = 0; round < kills; ++round) {
    int told[2];
    REQUIRE(::pipe(told) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::size_t i = 0;; ++i)
        if (!f.files->write(f.root, "file", contents[i % 2]) || ::write(told[1], "w", 1) != 1)
          ::_exit(1);
    }
    ::close(told[1]);
    char byte = 0;
    for (int writes = 0; writes < round % 5 + 1; ++writes)
      REQUIRE(::read(told[0], &byte, 1) == 1);
    // A little work of changing length, so that the moments differ.
    for (int i = 0; i < round * 7; ++i)
      (void)fs::exists(f.root + "/file");
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    ::close(told[0]);
    const auto found = f.get(f.root + "/file");
    CHECK((found == contents[0] || found == contents[1]));
  }
  const auto real = adapters::make_posix_file_system();
  for (const auto& entry : fs::directory_iterator(f.root)) {
    const auto name = entry.path().filename().string();
    CHECK((name == "file" || name == "src" || files::is_temporary_name(name)));
  }
  REQUIRE(files::remove_leftover_temporaries(*real, f.root));
  CHECK(entries_in(f.root) == 2);
}

} // namespace boyd::confined_files_test
