#include "boyd/improve/hygiene.hpp"
#include "boyd/improve/settings.hpp"
#include "support/pch.hpp"

#include <algorithm>

namespace boyd::hygiene_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

std::vector<finding> look(const std::map<std::string, std::string>& files,
                          hygiene_settings settings = {}) {
  std::vector<listed_file> list;
  for (const auto& [path, text] : files)
    list.push_back({path, text.size()});
  hygiene_scan scan(std::move(settings), list);
  for (const auto& f : list)
    if (scan.wants(f))
      scan.take(f.path, files.at(f.path));
  return scan.findings();
}

std::vector<std::string> told(const std::vector<finding>& findings) {
  std::vector<std::string> all;
  for (const auto& f : findings)
    all.push_back(f.rule + " " + f.path + ":" + std::to_string(f.line));
  return all;
}

} // namespace

TEST_CASE("hygiene finds what is wrong, and nothing else") {
  const auto found = look({
      {"README.md", "[a](docs/a.md) [b](docs/missing.md#x) [c](https://example.org/y)\n"
                    "`[d](no.md)` [e](#top) [f](docs)\n```\n[g](no.md)\n```\n[h]: gone.md\n"},
      {"docs/a.md", "[up](../README.md) [out](../../elsewhere.md) [sp](my%20file.md)\n"},
      {"docs/my file.md", "x\n"},
      {"merge.c", "int a;\n<<<<<<< ours\nint b;\n=======\nint c;\n>>>>>>> theirs\n"},
      {"title.rst", "Title\n=======\n"},
      {"last.txt", "one\ntwo"},
      {"empty.txt", ""},
      {"corpus/sample", "no end"},
      {"binary", std::string("\0\1\2", 3)},
      {"scripts/used", "#!/bin/sh\n"},
      {"scripts/lost.sh", "#!/bin/sh\n"},
      {"Makefile", "all:\n\tscripts/used\n"},
  });
  CHECK((told(found) ==
         std::vector<std::string>{"broken-link README.md:1", "broken-link README.md:6",
                                  "final-newline last.txt:2", "conflict-marker merge.c:2",
                                  "unreferenced-script scripts/lost.sh:0"}));
}

TEST_CASE("hygiene: large files and secrets are a person's, and a secret is not repeated") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  hygiene_settings settings;
  settings.large_file = 100;
  const auto found =
      look({{"big", std::string(200, 'x')}, {"conf", "a\nkey=" + key + "\n"}}, settings);
  REQUIRE(found.size() == 2);
  CHECK(found[0].rule == "large-file");
  CHECK(found[1].rule == "secret");
  CHECK(found[1].line == 2);
  for (const auto& f : found) {
    CHECK_FALSE(f.unfixable.empty());
    CHECK_THAT(f.message + f.text, !Contains(key));
  }
}

TEST_CASE("hygiene: rules and files can be left out") {
  hygiene_settings settings;
  settings.rules_off = {"final-newline"};
  settings.ignore = {"data/**"};
  CHECK(look({{"a.c", "x"}, {"data/b.md", "[x](y.md)\n"}}, settings).empty());
}

TEST_CASE("the usual tests are found, or what to write is said") {
  const auto find = [](const std::map<std::string, std::string>& files) {
    std::vector<listed_file> list;
    for (const auto& [path, text] : files)
      list.push_back({path, text.size()});
    return detect_scanners(
        [&](const std::string& p) { return files.contains(p); },
        [&](const std::string& p) { return files.contains(p) ? files.at(p) : std::string(); }, list,
        {"build", "build/release"});
  };
  const auto name = [&](const std::map<std::string, std::string>& files) {
    const auto d = find(files);
    return d.scanners.empty() ? std::string() : d.scanners.front().name;
  };
  CHECK(name({{"pyproject.toml", "[tool.pytest.ini_options]\n"}}) == "pytest");
  CHECK(name({{"tests/test_a.py", "x"}}) == "pytest");
  CHECK(name({{"go.mod", "module x"}}) == "go");
  CHECK(name({{"Cargo.toml", ""}}) == "cargo");
  CHECK(name({{"package.json", R"({"scripts":{"test":"node --test"}})"}}) == "npm");
  CHECK(name({{"package.json", R"({"scripts":{"test":"echo \"Error: no test specified\""}})"}})
            .empty());
  CHECK(name({{"CMakeLists.txt", ""}, {"build/release/CTestTestfile.cmake", ""}}) == "ctest");
  CHECK_THAT(find({{"CMakeLists.txt", ""}}).advice.front(), Contains("cmake -B build"));
  CHECK_THAT(find({{"a.c", ""}}).advice.front(), Contains("boyd-improve.yaml"));
}

} // namespace boyd::hygiene_test
