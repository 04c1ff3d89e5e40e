#include "cycle_lab.hpp"

#include <cstdlib>

/// What a patch cannot get by: a proof by absence, and a judge that it writes itself.
namespace boyd::proof_test {

using namespace boyd::improve;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* bad_link = "See [it](gone.md).\n";

/// The reasons why no patch came about, one after the other.
std::string refusals_of(const cycle_state& s) {
  std::string all;
  for (const auto& r : s.execution.refusals)
    all += r + "\n";
  return all;
}

std::string tap_of(const cycle_lab& lab) {
  return lab.tree.get("a.txt") == "good\n" ? "ok 1 - a\nok 2 - b\n" : "not ok 1 - a\nok 2 - b\n";
}

} // namespace

TEST_CASE("a finding is not mended by taking away the file that it stands in") {
  const std::vector<std::pair<std::string, std::string>> ways{
      {patch_of("README.md", "delete"), "deleted or emptied"},
      {patch_of("README.md", "modify", ""), "deleted or emptied"},
      {patch_of("README.md", "modify", " \n\n"), "deleted or emptied"},
      {patch_of(".gitignore", "create", "README.md\n"), "protected by default"},
      {patch_of("docs/.gitignore", "create", "*\n"), "protected by default"},
      {patch_of(".gitattributes", "create", "README.md binary\n"), ".gitattributes"},
      {patch_of("README.md", "modify", std::string(2000, 'x') + "\n"), "longer than 1000 bytes"},
  };
  for (const auto& [answer, reason] : ways) {
    INFO(answer.substr(0, 100));
    cycle_lab lab{{"README.md", bad_link}};
    lab.order.settings.hygiene.large_file = 1000; // what is larger is not looked at
    const auto before = lab.print();
    lab.answer = [text = answer](const std::string&) { return text; };
    const auto s = lab.cycle();
    CHECK(s.status == improve_status::failed);
    CHECK_THAT(refusals_of(s), Contains(reason));
    CHECK((lab.print() == before));
  }
}

TEST_CASE("a finding of a linter is not mended by a comment that silences it") {
  tree_lab lab;
  lab.put("a.py", "import os\n");
  auto rules = lab.rules();
  rules.task.path = "a.py";
  const auto judged = [&](const std::string& content) {
    return judge_patch(*read_proposal(patch_of("a.py", "modify", content)), rules, *lab.tree,
                       *lab.inside);
  };
  for (const std::string comment :
       {"# noqa: F401", "# NOQA", "# NoLint", "# pylint: skip-file", "# pylint:disable=all",
        "# rubocop:disable all", "// biome-ignore lint: x", "// @ts-nocheck", "#![allow(unused)]",
        "// cppcheck-suppress x", "# shellcheck  disable=SC2006", "# type:ignore"}) {
    INFO(comment);
    const auto silent = judged("import os  " + comment + "\n");
    REQUIRE_FALSE(silent.has_value());
    CHECK_THAT(silent.error().what, Contains("look away"));
  }
  CHECK(judged("import sys  # no second type, ignored\n").has_value());
}

TEST_CASE("what git knows is looked at, whatever a .gitignore file says") {
  cycle_lab lab{{"docs/guide.md", bad_link}, {"README.md", "x\n"}};
  lab.tree.put(".gitignore", "docs/\nnew.md\n");
  lab.commit("hides it");
  lab.tree.put("new.md", bad_link); // git does not know it
  lab.order.options.apply = false;
  const auto s = lab.cycle();
  REQUIRE(s.candidates.size() == 1);
  CHECK(s.candidates.front().what.path == "docs/guide.md");
}

TEST_CASE("a patch makes nothing that git ignores") {
  cycle_lab lab{{"README.md", bad_link}, {".gitignore", "build/\n"}};
  lab.answer = [](const std::string&) { return patch_of("build/gone.md", "create", "x\n"); };
  const auto s = lab.cycle();
  CHECK_THAT(refusals_of(s), Contains("git ignores this path"));
  CHECK_FALSE(std::filesystem::exists(lab.tree.path("build")));
}

TEST_CASE("what starts programs or says what is checked is protected, and can be opened") {
  for (const std::string path : {".github/workflows/ci.yml",
                                 ".GitHub/x",
                                 ".gitlab-ci.yml",
                                 "sub/.gitlab-ci.yaml",
                                 ".husky/pre-commit",
                                 ".claude/settings.json",
                                 ".mcp.json",
                                 ".envrc",
                                 ".vscode/tasks.json",
                                 ".ci/run",
                                 "Jenkinsfile",
                                 "conftest.py",
                                 "sub/conftest.py",
                                 "pytest.ini",
                                 "tox.ini",
                                 "setup.cfg",
                                 "package.json",
                                 "web/package.json",
                                 "CMakeLists.txt",
                                 "sub/CMakeLists.txt",
                                 "cmake/tests.cmake",
                                 "Makefile",
                                 "GNUmakefile",
                                 "AGENTS.md",
                                 ".eslintrc.json",
                                 ".eslintignore",
                                 ".gitignore",
                                 "Cargo.toml",
                                 "shellcheckrc",
                                 "pylintrc",
                                 ".mypy.ini",
                                 "sub/clippy.toml",
                                 ".rubocop.yml",
                                 "biome.json",
                                 "tsconfig.json",
                                 "tsconfig.build.json",
                                 "pyproject.toml"}) {
    INFO(path);
    CHECK_FALSE(why_protected(path, {}).empty());
    protection open;
    open.may_change = {path};
    CHECK(why_protected(path, open).empty());
    // What the operator protects stays protected.
    open.protect = {path};
    CHECK_FALSE(why_protected(path, open).empty());
  }
  for (const std::string path : {"src/main.c", "README.md", "docs/github/x.md", "makefiles/a.c",
                                 "github/a", "src/package.json.in", "setup.py", "go.mod"}) {
    INFO(path);
    CHECK(why_protected(path, {}).empty());
  }
}

TEST_CASE("what a cycle runs is found in its commands") {
  improve_settings s;
  scanner_settings scanner;
  scanner.argv = {"./test.sh", "a.c"};
  scanner.proof = {"sh", "-x", "tools/one.sh", "{test}"};
  s.scanners = {scanner};
  s.gate = {{"python3", "/repo/run.py"}, {"make", "check"}, {"/usr/bin/env", "x"}};
  s.executor.argv = {"tools/suggest", "--fast"};
  const auto files = files_run(s, "/repo", {});
  CHECK((files == std::vector<std::string>{"test.sh", "tools/one.sh", "run.py", "tools/suggest"}));
}

TEST_CASE("what a cycle runs is found behind other programs, too") {
  const std::set<std::string> known{"run.sh", "lib/a.sh", "cases.txt", "build.sh",
                                    "ask.py", "lint.sh",  "src.c",     "README.md"};
  const auto run = [&](const std::vector<std::string>& argv, bool is_lint) {
    improve_settings s;
    scanner_settings scanner;
    scanner.source = is_lint ? finding_source::lint : finding_source::test;
    scanner.argv = argv;
    s.scanners = {scanner};
    return files_run(s, "/repo", known);
  };
  using files = std::vector<std::string>;
  CHECK((run({"env", "X=1", "timeout", "5", "./run.sh"}, false) == files{"run.sh"}));
  CHECK((run({"sh", "-c", "cd . && ./run.sh --list=cases.txt; . lib/a.sh"}, false) ==
         files{"run.sh", "cases.txt", "lib/a.sh"}));
  CHECK((run({"prove", "--file", "cases.txt"}, false) == files{"cases.txt"}));
  CHECK((run({"prove", "no/such/file", "/repo/run.sh"}, false) == files{"run.sh"}));
  // What a linter looks at is what is to be mended.
  CHECK(run({"shellcheck", "run.sh"}, true).empty());
  CHECK((run({"env", "X=1", "./lint.sh", "src.c"}, true) == files{"lint.sh"}));
  CHECK((run({"timeout", "5", "sh", "lint.sh", "src.c"}, true) == files{"lint.sh"}));
  CHECK((run({"sh", "-c", "./lint.sh src.c"}, true) == files{"lint.sh", "src.c"}));
  improve_settings s;
  scanner_settings scanner;
  scanner.build = {"make", "-f", "build.sh"};
  s.scanners = {scanner};
  s.executor.argv = {"nice", "python3", "ask.py"};
  CHECK((files_run(s, "/repo", known) == files{"build.sh", "ask.py"}));
}

TEST_CASE("a file that git does not know is shown to nobody, whatever an output names") {
  cycle_lab lab{{"a.txt", "bad\n"}, {".gitignore", "secret.txt\n"}};
  lab.tree.put("secret.txt", "what is private\n");
  lab.tree.put("new.txt", "what is new\n");
  lab.has_tests([&] {
    return tap_of(lab) +
           "# ./a.txt:1: secret.txt:1: new.txt:1:\n# secret.txt:1: x\n# new.txt:1: x\n";
  });
  std::string prompt;
  lab.asks_agent = true;
  lab.answer = [&](const std::string& text) {
    prompt = text;
    return patch_of("a.txt", "modify", "good\n");
  };
  CHECK(lab.cycle().outcome == "SUCCESS");
  CHECK_THAT(prompt, Contains("[begin of a.txt]\nbad\n"));
  CHECK_THAT(prompt, !Contains("what is private") && !Contains("what is new"));
}

TEST_CASE("files of tests are known by their names") {
  for (const auto* path : {"tests/a.py", "test/x/y.c", "test_shop.py", "shop_test.go", "a.spec.ts",
                           "src/ShopTest.java", "TestShop.cs", "test.cpp", "__tests__/a.js"})
    CHECK(holds_tests(path));
  for (const auto* path :
       {"src/latest.c", "contest.py", "attestation/a.c", "Contest.java", "a.txt", "protest.md"})
    CHECK_FALSE(holds_tests(path));
}

TEST_CASE("a failing test is not mended in the test, unless that is allowed") {
  cycle_lab lab{{"a.txt", "bad\n"}, {"tests/a.py", "assert 1 == 2\n"}};
  bool mended = false;
  lab.has_tests([&] {
    mended = mended || lab.tree.get("tests/a.py").find("1 == 1") != std::string::npos;
    return std::string(mended ? "ok 1 - a\n" : "not ok 1 - a\n");
  });
  lab.answer = [](const std::string&) {
    return patch_of("tests/a.py", "modify", "assert 1 == 1\n");
  };
  const auto before = lab.print();
  const auto refused = lab.cycle();
  CHECK_THAT(refusals_of(refused), Contains("it holds tests"));
  CHECK((lab.print() == before));
  lab.order.settings.may_change_tests = true;
  CHECK(lab.cycle().outcome == "SUCCESS");
}

TEST_CASE("files of tests are closed whatever the task is, but for the finding's own") {
  finding lint;
  lint.path = "tests/a.py";
  finding failing;
  failing.from = finding_source::test;
  failing.path = "shop.py";
  CHECK(why_kept("tests/a.py", lint, {}).empty());
  CHECK_THAT(why_kept("tests/b.py", lint, {}), Contains("may_change_tests"));
  CHECK(why_kept("shop.py", lint, {}).empty());
  CHECK_FALSE(why_kept("tests/a.py", failing, {}).empty());
  CHECK_FALSE(why_kept("shop.py", failing, {}).empty()); // it is the test's file
  protection open;
  open.may_change_tests = true;
  CHECK(why_kept("tests/b.py", lint, open).empty());
  CHECK(why_kept("tests/b.py", failing, open).empty());
}

TEST_CASE("a test that passed before must pass after, whatever other tests come in its place") {
  for (const bool has_gate : {true, false}) {
    INFO("a gate of the operator's: " << has_gate);
    cycle_lab lab{{"a.txt", "bad\n"}};
    lab.has_tests([&] {
      return std::string(lab.tree.get("a.txt") == "good\n" ? "ok 1 - a\nok 2 - c\nok 3 - d\n"
                                                           : "not ok 1 - a\nok 2 - b\nok 3 - d\n");
    });
    if (has_gate)
      lab.has_gate([] {});
    lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
    const auto s = lab.cycle();
    CHECK(s.status == improve_status::failed);
    CHECK_THAT(s.reason, Contains("a test that passed before") && Contains(": b"));
    CHECK(lab.tree.get("a.txt") == "bad\n");
    // Once the cycle is over, nobody needs the names.
    CHECK_THAT(lab.tree.get("_outputs/agi_kernel/state.json"), !Contains("passed_tests"));
  }
}

TEST_CASE("the names of tests that passed outlive a restart") {
  cycle_state s;
  s.results.scanners.push_back({"tests", 0, 1, 2, {}, false, true, {"b", "d"}});
  const auto again = read_state(state_json(s));
  REQUIRE(again.has_value());
  CHECK((again->results.scanners.front().passed_tests == std::vector<std::string>{"b", "d"}));
}

TEST_CASE("behind a gate of the operator's no fewer tests may run than before") {
  cycle_lab lab{{"a.txt", "bad\n"}};
  lab.has_tests([&] {
    // The second test is gone once the first one passes.
    return std::string(lab.tree.get("a.txt") == "good\n" ? "ok 1 - a\n"
                                                         : "not ok 1 - a\nok 2 - b\n");
  });
  lab.has_gate([] {});
  lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
  const auto before = lab.print();
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::failed);
  CHECK_THAT(s.reason, Contains("fewer tests ran than before (1 instead of 2)"));
  CHECK((lab.print() == before));
}

TEST_CASE("tests that take too long cannot verify anything, and nobody is asked") {
  cycle_lab lab{{"a.txt", "bad\n"}};
  lab.has_tests([&] { return tap_of(lab); });
  lab.has_gate([] {});
  lab.is_late = true;
  lab.order.settings.scanners.front().proof = {"one", "{test}"};
  int asked = 0;
  lab.answer = [&](const std::string&) {
    ++asked;
    return patch_of("a.txt", "modify", "good\n");
  };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK(s.strikes.empty());
  CHECK_THAT(s.reason, Contains("tests took longer than 10m") && Contains("timeout"));
  CHECK(asked == 0);
  // A dry run still says what it would do.
  lab.order.options.apply = false;
  CHECK(lab.cycle().status == improve_status::completed);
}

TEST_CASE("what stands in a protected file is blocked, and says how to open it") {
  cycle_lab lab{{".github/README.md", bad_link}};
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  REQUIRE(s.candidates.size() == 1);
  CHECK_THAT(s.candidates.front().blocked, Contains("improve.may_change"));
}

TEST_CASE("a patch is bounded in lines, and a very long line in bytes") {
  cycle_lab lab{{"README.md", bad_link}};
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += std::to_string(i) + "\n";
  lab.answer = [&](const std::string&) { return patch_of("gone.md", "create", many); };
  CHECK_THAT(refusals_of(lab.cycle()), Contains("changes 300 lines or more, 200 are the most"));
  lab.answer = [](const std::string&) {
    return patch_of("gone.md", "create", std::string(100'000, 'x') + "\n");
  };
  CHECK_THAT(refusals_of(lab.cycle()), Contains("100001 bytes, 65536 are the most"));
}

TEST_CASE("what is committed is what was verified: a test run that writes to a patched file") {
  cycle_lab lab{{"a.txt", "bad\n"}};
  lab.order.options.auto_commit = true;
  lab.has_tests([&] { return tap_of(lab); });
  lab.has_gate([&] { lab.tree.put("a.txt", "good, and more\n"); });
  lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
  const auto first = lab.head();
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK(s.strikes.empty());
  CHECK(lab.head() == first);
  CHECK(lab.tree.get("a.txt") == "good, and more\n");
  // The reason has the command that gives back what was there before.
  CHECK_THAT(s.reason, Contains("a.txt"));
  const auto command = s.reason.substr(s.reason.find("cp -p"));
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(lab.tree.get("a.txt") == "bad\n");
}

TEST_CASE("a patch whose gate changes another file is not verified, committed or not") {
  for (const bool commits : {true, false}) {
    cycle_lab lab{{"a.txt", "bad\n"}, {"b.txt", "b\n"}};
    lab.order.options.auto_commit = commits;
    lab.has_tests([&] { return tap_of(lab); });
    lab.has_gate([&] { lab.tree.put("b.txt", "what the tests need\n"); });
    lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
    const auto first = lab.head();
    const auto s = lab.cycle();
    CHECK(s.status == improve_status::paused);
    CHECK(s.failure == failure_kind::environment);
    CHECK(s.outcome == "FAILURE");
    CHECK(s.strikes.empty());
    CHECK(lab.head() == first);
    CHECK_THAT(s.reason, Contains("while the patch was verified") && Contains("b.txt"));
    CHECK(lab.tree.get("a.txt") == "bad\n");
    CHECK(lab.tree.get("b.txt") == "what the tests need\n");
  }
}

TEST_CASE("a patch whose tests change another file is not verified") {
  cycle_lab lab{{"a.txt", "bad\n"}, {"b.txt", "b\n"}};
  lab.has_tests([&] {
    if (lab.tree.get("a.txt") == "good\n")
      lab.tree.put("b.txt", "what the patch wants\n");
    return tap_of(lab);
  });
  int gates = 0;
  lab.has_gate([&] { ++gates; });
  lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK(s.failure == failure_kind::environment);
  CHECK_THAT(s.reason, Contains("b.txt"));
  CHECK(gates == 0);
  CHECK(lab.tree.get("a.txt") == "bad\n");
}

TEST_CASE("a failing test runs once more before anybody is asked, and not twice") {
  cycle_lab lab{{"a.txt", "bad\n"}};
  int runs = 0;
  lab.has_tests([&] {
    ++runs;
    return tap_of(lab);
  });
  int runs_before = 0;
  lab.answer = [&](const std::string&) {
    runs_before = runs;
    return patch_of("a.txt", "modify", "good\n");
  };
  CHECK(lab.cycle().outcome == "SUCCESS");
  CHECK(runs_before == 2);
}

TEST_CASE("what a failed patch changed beside its own files is named") {
  cycle_lab lab{{"a.txt", "bad\n"}, {"b.txt", "b\n"}};
  lab.has_tests([&] {
    if (lab.tree.get("a.txt") == "worse\n")
      lab.tree.put("b.txt", "what the patch wants\n");
    return tap_of(lab);
  });
  lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "worse\n"); };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::failed);
  CHECK_THAT(s.reason,
             Contains("the proof failed") && Contains("other files changed, too (b.txt)"));
  CHECK(lab.tree.get("a.txt") == "bad\n");
}

TEST_CASE("an approved patch is not applied to a tree that a person works in") {
  cycle_lab lab{{"README.md", bad_link}, {"b.txt", "b\n"}};
  lab.order.options.approve = true;
  lab.answer = [](const std::string&) { return patch_of("README.md", "modify", "See it.\n"); };
  const auto waiting = lab.cycle();
  REQUIRE(waiting.awaits_approval());
  lab.tree.put("b.txt", "theirs\n");
  lab.order.resume = true;
  lab.order.options.approved = waiting.execution.patch->digest;
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK_THAT(s.reason, Contains("not committed (b.txt)"));
  CHECK(lab.tree.get("README.md") == bad_link);
}

TEST_CASE("a patch that somebody else commits is theirs, and stays") {
  cycle_lab lab{{"a.txt", "bad\n"}};
  lab.order.options.auto_commit = true;
  lab.has_tests([&] { return tap_of(lab); });
  std::string theirs;
  lab.has_gate([&] {
    if (theirs.empty())
      theirs = lab.commit("all that was there");
  });
  lab.answer = [](const std::string&) { return patch_of("a.txt", "modify", "good\n"); };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK(s.commit.empty());
  CHECK(lab.head() == theirs);
  CHECK(lab.tree.get("a.txt") == "good\n");
  CHECK_THAT(s.reason, Contains("HEAD was") && Contains("somebody committed it"));
}

TEST_CASE("a commit of somebody's while a patch is asked for voids the answer") {
  cycle_lab lab{{"README.md", bad_link}, {"b.txt", "b\n"}};
  lab.answer = [&](const std::string&) {
    lab.tree.put("b.txt", "theirs\n");
    lab.commit("theirs");
    return patch_of("README.md", "modify", "See it.\n");
  };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK(s.strikes.empty());
  CHECK_THAT(s.reason, Contains("HEAD was") && Contains("the next cycle begins from there"));
  CHECK(lab.tree.get("README.md") == bad_link);
}

TEST_CASE("case 50 patch-base-moved: an approval is void when somebody has committed meanwhile") {
  cycle_lab lab{{"README.md", bad_link}, {"b.txt", "b\n"}};
  lab.order.options.approve = true;
  lab.answer = [](const std::string&) { return patch_of("README.md", "modify", "See it.\n"); };
  const auto waiting = lab.cycle();
  REQUIRE(waiting.awaits_approval());
  lab.tree.put("b.txt", "theirs\n");
  lab.commit("theirs");
  lab.order.resume = true;
  lab.order.options.approved = waiting.execution.patch->digest;
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK_FALSE(s.awaits_approval());
  CHECK_THAT(s.reason, Contains("HEAD was"));
  CHECK(lab.tree.get("README.md") == bad_link);
}

TEST_CASE("files that change while a patch is asked for are named, and nobody is blamed") {
  for (const std::string path : {"b.txt", "new.txt", "untracked.txt"}) {
    INFO(path);
    cycle_lab lab{{"README.md", bad_link}, {"b.txt", "b\n"}};
    lab.tree.put("untracked.txt", "mine\n");
    lab.answer = [&](const std::string&) {
      lab.tree.put(path, "somebody's work\n");
      return patch_of("README.md", "modify", "See it.\n");
    };
    const auto s = lab.cycle();
    CHECK(s.status == improve_status::paused);
    CHECK(s.failure == failure_kind::environment);
    CHECK(s.strikes.empty());
    CHECK_THAT(s.reason, Contains(path));
    CHECK(lab.tree.get(path) == "somebody's work\n");
    CHECK(lab.tree.get("README.md") == bad_link);
  }
}

TEST_CASE("tests that change files which git knows cost no question") {
  cycle_lab lab{{"a.txt", "bad\n"}, {"b.txt", "0"}};
  lab.has_tests([&] {
    lab.tree.put("b.txt", lab.tree.get("b.txt") + "1");
    return tap_of(lab);
  });
  int asked = 0;
  lab.answer = [&](const std::string&) {
    ++asked;
    return patch_of("a.txt", "modify", "good\n");
  };
  const auto s = lab.cycle();
  CHECK(s.status == improve_status::paused);
  CHECK_THAT(s.reason, Contains("b.txt"));
  CHECK(asked == 0);
}

TEST_CASE("the end of a cycle is kept until it was told") {
  cycle_lab lab{{"README.md", bad_link}};
  lab.answer = [](const std::string&) { return std::string("no patch"); };
  const auto first = lab.cycle();
  REQUIRE(first.untold.size() == 1);
  CHECK_THAT(first.untold.front(), Contains(first.cycle_id) && Contains("\"FAILURE\""));
  // Nobody heard of it: the next cycle still has it.
  const auto second = lab.cycle();
  REQUIRE(second.untold.size() == 2);
  CHECK(second.untold.front() == first.untold.front());
  REQUIRE(lab.mark_told(first.untold).has_value());
  const auto left = latest_state(lab.order.root, lab.order.settings, *lab.tree.files).value();
  CHECK((left.untold == std::vector<std::string>{second.untold.back()}));
  CHECK(left.cycle_id == second.cycle_id);
  // A node hears of it by itself.
  lab.order.options.told_elsewhere = true;
  CHECK((lab.cycle().untold == left.untold));
}

TEST_CASE("a patch that waits is replaced by no other cycle, and can be dropped") {
  cycle_lab lab{{"README.md", bad_link}};
  lab.order.options.approve = true;
  lab.answer = [](const std::string&) { return patch_of("README.md", "modify", "See it.\n"); };
  const auto waiting = lab.cycle();
  REQUIRE(waiting.awaits_approval());
  const auto state = lab.tree.get("_outputs/agi_kernel/state.json");
  const auto refused = lab.try_cycle();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::conflict);
  CHECK_THAT(refused.error().where, Contains("/patch.diff"));
  CHECK_THAT(refused.error().next, Contains(waiting.execution.patch->digest) &&
                                       Contains("retry " + waiting.selected->task_id));
  CHECK(lab.tree.get("_outputs/agi_kernel/state.json") == state);
  CHECK(lab.retry(waiting.selected->task_id).value_or("") == waiting.selected->task_id);
  const auto again = lab.cycle();
  CHECK(again.awaits_approval());
  CHECK(again.cycle_id != waiting.cycle_id);
}

TEST_CASE("patch.diff takes back what was done, when it was approved as well as at once") {
  for (const bool approves : {false, true}) {
    cycle_lab lab{{"a.txt", "first\nbad\nlast"}, {"gone.txt", "x\n"}};
    lab.has_tests([&] {
      return std::string(lab.tree.get("a.txt") == "first\ngood\nlast" ? "ok 1 - a\n"
                                                                      : "not ok 1 - a\n");
    });
    lab.order.options.approve = approves;
    lab.answer = [](const std::string&) {
      return nlohmann::json{
          {"files",
           {{{"path", "a.txt"}, {"action", "modify"}, {"content", "first\ngood\nlast"}},
            {{"path", "new.txt"}, {"action", "create"}, {"content", "n\n"}},
            {{"path", "gone.txt"}, {"action", "delete"}}}}}
          .dump();
    };
    auto s = lab.cycle();
    if (approves) {
      REQUIRE(s.awaits_approval());
      lab.order.resume = true;
      lab.order.options.approved = s.execution.patch->digest;
      s = lab.cycle();
    }
    INFO(s.reason);
    REQUIRE(s.outcome == "SUCCESS");
    const auto diff = directory_of(lab.order.root, lab.order.settings, s.cycle_id) + "/patch.diff";
    const auto git = "git -C '" + lab.order.root + "' apply ";
    CHECK(std::system((git + "-R --check '" + diff + "'").c_str()) == 0);
    CHECK(std::system((git + "--check '" + diff + "' 2>/dev/null").c_str()) != 0);
    CHECK(std::system((git + "-R '" + diff + "'").c_str()) == 0);
    CHECK(lab.tree.get("a.txt") == "first\nbad\nlast");
    CHECK(lab.tree.get("gone.txt") == "x\n");
  }
}

TEST_CASE("a dry run leaves a patch that waits for approval as it is") {
  cycle_lab lab{{"README.md", bad_link}};
  lab.order.options.approve = true;
  lab.answer = [](const std::string&) { return patch_of("README.md", "modify", "See it.\n"); };
  const auto waiting = lab.cycle();
  REQUIRE(waiting.awaits_approval());
  const auto state = lab.tree.get("_outputs/agi_kernel/state.json");
  lab.order.options = {};
  CHECK(lab.cycle().status == improve_status::completed);
  CHECK(lab.tree.get("_outputs/agi_kernel/state.json") == state);
  lab.order.options.apply = true;
  lab.order.options.approved = waiting.execution.patch->digest;
  lab.order.resume = true;
  CHECK(lab.cycle().outcome == "SUCCESS");
  CHECK(lab.tree.get("README.md") == "See it.\n");
}

} // namespace boyd::proof_test
