#pragma once

#include "tree_lab.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace boyd::test {

inline std::string numbers(int n) {
  std::string text;
  for (int i = 0; i < n; ++i)
    text += std::to_string(i) + "\n";
  return text;
}

/// What hostile patches aim at.
inline void put_targets(const tree_lab& lab) {
  const auto check = [](bool made) {
    if (!made)
      throw std::runtime_error("a target of hostile patches could not be made");
  };
  lab.put("f", "a\n");
  lab.put("directory/in", "x\n");
  lab.put("hard", "x\n");
  lab.put("setuid", "x\n", 04755);
  check(::link(lab.path("hard").c_str(), lab.path("hard2").c_str()) == 0);
  check(::symlink("f", lab.path("link").c_str()) == 0);
  check(::symlink("directory", lab.path("dirlink").c_str()) == 0);
  check(::symlink("/etc", lab.path("outlink").c_str()) == 0);
  check(::mkfifo(lab.path("fifo").c_str(), 0600) == 0);
}

/// Answers that may not change anything, each with a part of the reason why.
inline std::vector<std::pair<std::string, std::string>> hostile_patches() {
  using nlohmann::json;
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  const auto many = [] {
    json files = json::array();
    for (int i = 0; i < 6; ++i)
      files.push_back(
          {{"path", "n" + std::to_string(i)}, {"action", "create"}, {"content", "x\n"}});
    return json{{"files", files}}.dump();
  };
  const auto two = [](const char* a, const char* b) {
    return json{{"files",
                 {{{"path", a}, {"action", "create"}, {"content", "x\n"}},
                  {{"path", b}, {"action", "create"}, {"content", "x\n"}}}}}
        .dump();
  };
  const auto diff = [](const std::string& head) {
    return "diff --git a/f b/f\n" + head + "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
  };
  return {
      {patch_of("/etc/passwd", "modify", "x"), "relative"},
      {patch_of("../outside", "create", "x"), "leads out"},
      {patch_of("a/../../outside", "create", "x"), "leads out"},
      {patch_of("a/../f", "modify", "x"), "plain"},
      {patch_of("./f", "modify", "x"), "plain"},
      {patch_of("a//b", "create", "x"), "plain"},
      {patch_of("", "create", "x"), "no path"},
      {patch_of(".git/hooks/pre-commit", "create", "x"), ".git"},
      {patch_of(".GIT/config", "create", "x"), ".git"},
      {patch_of(".git /config", "create", "x"), ".git"},
      {patch_of("git~1/config", "create", "x"), ".git"},
      {patch_of("sub/.git/config", "create", "x"), ".git"},
      {patch_of(".g\xE2\x80\x8Cit/config", "create", "x"), ".git"},
      {patch_of(".git::$INDEX_ALLOCATION/config", "create", "x"), ".git"},
      {patch_of("a\\.git\\config", "create", "x"), "relative"},
      {patch_of(".gitattributes", "create", "* filter=x"), ".gitattributes"},
      {patch_of(".gitmodules", "create", "x"), ".gitmodules"},
      {patch_of("link", "modify", "x"), "symbolic link"},
      {patch_of("dirlink/f", "create", "x"), "symbolic link"},
      {patch_of("outlink/passwd", "modify", "x"), "leads out"},
      {patch_of("hard", "modify", "x"), "hard link"},
      {patch_of("setuid", "modify", "x"), "special permissions"},
      {patch_of("directory", "modify", "x"), "directory"},
      {patch_of("fifo", "modify", "x"), "no regular file"},
      {patch_of("F", "create", "x"), "differs from f only"},
      {patch_of("Directory/x", "create", "x"), "differs from directory only"},
      {two("new", "NEW"), "twice"},
      {two("new", "new"), "twice"},
      {two("new", "new/below"), "a file and a directory"},
      {patch_of("f", "create", "x"), "exists already"},
      {patch_of("missing", "modify", "x"), "does not exist"},
      {patch_of("missing", "delete", ""), "does not exist"},
      {patch_of("f", "chmod", "x"), "not one of"},
      {patch_of("f", "modify", "a\n"), "changes nothing"},
      {patch_of("f", "modify", std::string("a\0b", 3)), "binary"},
      {patch_of("f", "modify", "a\x1b[2K\n"), "nobody sees (U+001B"},
      {patch_of("f", "modify", "a\rb\n"), "nobody sees (U+000D"},
      {patch_of("new", "create", "a \xE2\x80\xAE b\n"), "nobody sees (U+202E"},
      {patch_of("new", "create", "a \xE2\x81\xA6 b\n"), "nobody sees (U+2066"},
      {patch_of("f", "modify", "key " + key + "\n"), "secret"},
      {patch_of("f", "modify", numbers(300)), "200 are the most"},
      {many(), "5 are the most"},
      {R"({"files": []})", "changes no file"},
      {R"({"files": [{"path": "f", "action": "modify", "content": "x", "mode": "100755"}]})",
       "not known"},
      {R"({"files": ["f"]})", "must hold objects"},
      {R"({"patch": "x"})", "no patch"},
      {"I would rather not.", "no patch"},
      {diff("old mode 100644\nnew mode 100755\n"), "mode"},
      {diff("new file mode 120000\n"), "plain files"},
      {diff("rename from f\nrename to g\n"), "renames"},
      {"diff --git a/f b/f\nGIT binary patch\nliteral 1\nIcmZ\n", "binary"},
      {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-other\n+b\n", "not what the file has"},
      {patch_of("_outputs/agi_kernel/state.json", "create", "x"), "Boyd's own"},
      {patch_of("_outputs", "create", "x"), "Boyd's own"},
      {patch_of("boyd-improve.yaml", "create", "x"), "which programs"},
      {patch_of("Boyd-Improve.yaml", "create", "x"), "which programs"},
      {patch_of("conftest.py", "create", "x\n"), "protected by default"},
      {patch_of(".github/workflows/ci.yml", "create", "x\n"), "protected by default"},
      {patch_of(".mcp.json", "create", "{}\n"), "protected by default"},
      {patch_of("f", "modify", std::string(70'000, 'x')), "65536 are the most"},
      {patch_of("secure/policy", "create", "x"), "protected"},
      {patch_of("name\nwith", "create", "x"), "control character"},
      {patch_of("con:stream", "create", "x"), "another one"},
      {patch_of(std::string(5000, 'a'), "create", "x"), "longer"},
  };
}

} // namespace boyd::test
