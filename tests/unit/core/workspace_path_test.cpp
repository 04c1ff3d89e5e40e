#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <algorithm>

namespace boyd::workspace_path_test {

using namespace boyd;

TEST_CASE("paths below a workspace are made plain by their names", "[workspace_path]") {
  const auto plain = [](const std::string& path) {
    const auto r = workspace_path("/srv/repo", path);
    return r ? *r : std::string(name_of(r.error().code));
  };
  CHECK(plain("a.txt") == "a.txt");
  CHECK(plain("./a//b/./c/") == "a/b/c");
  CHECK(plain(".") == ".");
  CHECK(plain("a/..") == ".");
  CHECK(plain("a/../b") == "b");
  CHECK(plain("/srv/repo") == ".");
  CHECK(plain("/srv/repo/") == ".");
  CHECK(plain("/srv/repo/x/y") == "x/y");
  CHECK(plain("...") == "...");
  CHECK(plain("") == "invalid_argument");
  CHECK(plain(std::string(workspace_path_bytes + 1, 'x')) == "invalid_argument");
  CHECK(workspace_path("/", "/etc/passwd").value() == "etc/passwd");
  CHECK(workspace_path("/srv/repo/", "/srv/repo/x").value() == "x");
}

TEST_CASE("case 48 patch-traversal: what leads out by its name is refused", "[workspace_path]") {
  for (const auto* path : {"..", "../x", "a/../../x", "/etc/passwd", "/srv/repository/x",
                           "/srv/repo/../x", "/srv", "/", "./.././x"}) {
    const auto r = workspace_path("/srv/repo", path);
    INFO(path);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::refused);
  }
  CHECK(workspace_path("/srv/repo", std::string_view("a\0b", 3)).error().code == errc::refused);
}

TEST_CASE("no path leads out, and what was made plain stays as it is", "[workspace_path]") {
  CHECK(rc::check("plain", [](const std::vector<std::uint8_t>& picks) {
    static const std::vector<std::string> pieces{"..", ".", "/", "a", "b.c", "//", "\\", "..."};
    std::string path;
    for (const auto pick : picks)
      path += pieces[pick % pieces.size()];
    const auto once = workspace_path("/srv/repo", path);
    if (!once)
      return;
    RC_ASSERT(!once->empty() && once->front() != '/' && once->back() != '/');
    if (*once != ".")
      for (const auto part : split(*once, '/'))
        RC_ASSERT(!part.empty() && part != "." && part != "..");
    RC_ASSERT(workspace_path("/srv/repo", *once).value() == *once);
  }));
}

TEST_CASE(
    "case 48 patch-dotgit, patch-case-twin: nothing is written in git's directory under any of "
    "its names",
    "[workspace_path]") {
  for (const auto* path :
       {".git", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".Git", ".git ", ".git.",
        ".git . .", ".git::$INDEX_ALLOCATION/x", ".git:x", "git~1/config", "GIT~1", "git~1 .",
        ".g\xE2\x80\x8Cit/config", "\xEF\xBB\xBF.git", ".gi\xE2\x81\xAFt", "a\\.git\\config",
        ".git\\config"}) {
    INFO(path);
    CHECK(why_unwritable(path));
  }
  for (const auto* path : {".github/workflows/ci.yml", ".gitignore", "git", "git~2", "x.git",
                           ".gitx", "..git", "a/b", ".gitkeep", "git~1x", "\xE2\x80\x90.git"}) {
    INFO(path);
    CHECK_FALSE(why_unwritable(path));
  }
}

TEST_CASE("case 48 patch-gitattributes: files that make git run or fetch something are refused",
          "[workspace_path]") {
  for (const auto* path :
       {".gitattributes", "sub/.gitattributes", ".GitAttributes", ".gitattributes ", "gitatt~1",
        "GITATT~4", "gi7d29~1", "gi7d~123", ".gitmodules", "gitmod~2", "gi7eba~9", ".gitconfig",
        "gitcon~1", ".gitmodules:$DATA", ".git\xE2\x80\x8Dmodules"}) {
    INFO(path);
    CHECK(why_unwritable(path));
  }
  for (const auto* path :
       {"gitatt~5", "gitatt~0", "gi7d29~0", "gitattributes", "gi7d29~12", "~1"}) {
    INFO(path);
    CHECK_FALSE(why_unwritable(path));
  }
  CHECK(why_unwritable("a\nb"));
  CHECK(why_unwritable("a\x7F"));
}

TEST_CASE("in the node's home agents write what is theirs and read no secret", "[workspace_path]") {
  const auto written = [](const char* path) { return !why_home_forbids(path, file_use::write); };
  const auto read = [](const char* path) { return !why_home_forbids(path, file_use::read); };
  // A run in a worktree reads there.
  CHECK(read("run/worktrees/01-1/src/a.cpp"));
  CHECK_FALSE(written("run/worktrees/01-1/src/a.cpp"));
  CHECK_FALSE(read("run/worktrees"));
  CHECK_FALSE(read("run/prompts/x"));
  for (const auto* path : {"kernel/default/GOAL.md", "kernel/default/SOUL.md",
                           "kernel/default/MEMORY.md", "kernel/default/notes/2026-01-01.md",
                           "kernel/default/research/x.md", "kernel/default/report/STATE.md"}) {
    INFO(path);
    CHECK(written(path));
    CHECK(read(path));
  }
  for (const auto* path :
       {"kernel/default/STATE.md", "kernel/default/state.md", "kernel/default/STATE.md.",
        "kernel/default/STATE.md.bak", "kernel/default/.STATE.md.boyd-tmp-1",
        "kernel/default/INIT.md", "kernel/default/SYSTEM_PROMPT.md",
        "kernel/default/archive/2026-01.md", "kernel/default/archive", "kernel/default", "kernel",
        "knowledge/graph.jsonl", "executions/x/record.json", "skills/x/SKILL.md",
        "context/bank/x"}) {
    INFO(path);
    CHECK_FALSE(written(path));
    CHECK(read(path));
  }
  for (const auto* path : {"boyd.yaml", "boyd.db", "boyd.db-wal", "run/token", "run", "spool/x",
                           "Kernel/default/GOAL.md"}) {
    INFO(path);
    CHECK_FALSE(written(path));
    CHECK_FALSE(read(path));
  }
  CHECK_FALSE(written("."));
  CHECK(read("."));
}

} // namespace boyd::workspace_path_test
