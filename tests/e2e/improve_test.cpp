#include "improve_lab.hpp"

#include <csignal>
#include <cstdlib>

namespace boyd::improve_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

constexpr const char* scripted = "  executor: {type: script, file: answers.yaml}\n";

/// A program in C++ whose test fails, with a linter that complains.
std::map<std::string, std::string> cpp_files() {
  return {{"add.hpp", "inline int add(int a, int b) { return a - b; }\n"},
          {"test.cpp",
           "#include \"add.hpp\"\n#include <cstdio>\nint main() {\n"
           "  std::puts(add(2, 2) == 4 ? \"ok 1 - adds\" : \"not ok 1 - adds\");\n"
           "  std::puts(add(0, 0) == 0 ? \"ok 2 - nothing\" : \"not ok 2 - nothing\");\n}\n"},
          {"test.sh", "#!/bin/sh\nmkdir -p build && c++ -o build/t test.cpp && build/t\n"},
          {"README.md", "Run test.sh.\n"}};
}

const std::string cpp_improve =
    std::string("  scanners:\n"
                "    - {name: tests, source: test, parser: tap, argv: [./test.sh]}\n") +
    scripted;

/// A module in Python with a test that reports in JUnit's form.
std::map<std::string, std::string> python_files() {
  return {{"shop.py", "def total(prices):\n    return sum(prices[1:])\n"},
          {"run_tests.py",
           "import os, shop\n"
           "cases = {'empty': shop.total([]) == 0, 'two': shop.total([1, 2]) == 3}\n"
           "os.makedirs('build', exist_ok=True)\n"
           "with open('build/junit.xml', 'w') as f:\n"
           "    f.write('<testsuite>')\n"
           "    for name, good in cases.items():\n"
           "        f.write('<testcase classname=\"shop\" name=\"%s\">%s</testcase>' %\n"
           "                (name, '' if good else '<failure message=\"wrong\"/>'))\n"
           "    f.write('</testsuite>')\n"
           "raise SystemExit(0 if all(cases.values()) else 1)\n"},
          {"README.md", "Run run_tests.py.\n"}};
}

const std::string python_improve =
    std::string("  scanners:\n"
                "    - {name: tests, source: test, parser: junit, argv: [python3, run_tests.py], "
                "report: build/junit.xml}\n") +
    scripted;

/// Documents and shell scripts: a linter in the compiler's form, and a link that leads nowhere.
std::map<std::string, std::string> shell_files() {
  return {{"README.md", "See [the guide](docs/guid.md).\n"},
          {"docs/guide.md", "Run `bin/greet` and lint.sh.\n"},
          {"bin/greet", "#!/bin/sh\necho `date`\n"},
          {"lint.sh", "#!/bin/sh\ngrep -n '`' bin/greet | sed "
                      "'s/^\\([0-9]*\\):.*/bin\\/greet:\\1:1: error: use $(...) [SC2006]/'\n"
                      "! grep -q '`' bin/greet\n"}};
}

const std::string shell_improve =
    std::string("  scanners:\n"
                "    - {name: lint, source: lint, parser: lines, argv: [./lint.sh]}\n") +
    scripted;

/// A gate that waits for ever, until its script is written anew.
std::string waiting_gate(const repository_lab& lab) {
  const auto pipe = lab.outside("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  write_file(lab.outside("gate.sh"), "cat '" + pipe + "'\n");
  lab.configure(cpp_improve + "  gate: [[sh, " + lab.outside("gate.sh") + "]]\n");
  return lab.outside("gate.sh");
}

constexpr const char* good_cpp = "inline int add(int a, int b) { return a + b; }\n";

} // namespace

TEST_CASE("a dry run says what it would do, and changes nothing") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  const auto before = lab.print();
  const auto ran = lab.improve({"--dry-run", "--json"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto report = ran.json();
  CHECK(report.at("status") == "COMPLETED");
  CHECK(report.at("selected_task").at("finding").at("test") == "adds");
  CHECK(report.at("scan_results").at("test_failures") == 1);
  CHECK((lab.print() == before));
  CHECK(lab.git("status --porcelain").empty());
  const auto again = lab.improve({"--json"}).json();
  CHECK(again.at("selected_task").at("task_id") == report.at("selected_task").at("task_id"));
  const auto day = report.at("cycle_id").get<std::string>().substr(0, 8);
  const auto outputs = lab.path("_outputs/agi_kernel/");
  for (const auto& file : {"state.json", "state.json.bak"})
    CHECK(json::parse(read_file(outputs + file)).at("schema_version") == 1);
  CHECK(json::parse(read_file(outputs + day + "/latest_candidates.json")).at("total") == 1);
  CHECK_FALSE(read_file(lab.path("_logs/autonomy/agi_kernel/") + day + "/" +
                        report.at("cycle_id").get<std::string>() + ".log")
                  .empty());
  CHECK_FALSE(std::filesystem::exists(outputs + "lock"));
}

TEST_CASE("C++: a failing test is mended, verified, committed and told of") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.answers({"```diff\n--- a/add.hpp\n+++ b/add.hpp\n@@ -1 +1 @@\n-inline int add(int a, int b) "
               "{ return a - b; }\n+" +
               std::string(good_cpp) + "```\n"});
  const auto ran = lab.improve({"--apply", "--auto-commit", "--json"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  CHECK(lab.get("add.hpp") == good_cpp);
  CHECK(lab.git("status --porcelain").empty());
  CHECK_THAT(lab.git("log -1 --format=%H%n%B"),
             Contains(ran.json().at("commit").get<std::string>()));
  CHECK_THAT(lab.git("log -1 --format=%B"), Contains("Task: test-"));
  CHECK(lab.git("show --stat --format= HEAD | grep -c '|'") == "1\n");
  CHECK_THAT(lab.improve({"report"}).out, Contains("COMPLETED"));
  CHECK_FALSE(std::filesystem::exists(
      lab.path("_outputs/agi_kernel/undo/" + ran.json().at("cycle_id").get<std::string>())));
  // Nothing is left to do.
  const auto next = lab.improve({"--apply", "--json"});
  CHECK(next.json().at("status") == "COMPLETED");
  CHECK(next.json().at("selected_task").is_null());
}

TEST_CASE("C++: a warning of the compiler, a failing test and a broken link, one after the other") {
  auto files = cpp_files();
  files["util.cpp"] = "int twice(int a) {\n  int unused = a;\n  return 2 * a;\n}\n";
  files["README.md"] = "Run test.sh, see [the guide](docs/guid.md).\n";
  files["docs/guide.md"] = "Nothing yet.\n";
  const repository_lab lab(files,
                           "  scanners:\n"
                           "    - {name: tests, source: test, parser: tap, argv: [./test.sh]}\n"
                           "    - {name: compiler, source: lint, parser: lines,\n"
                           "       argv: [c++, -Wall, -Werror, -fsyntax-only, util.cpp]}\n" +
                               std::string(scripted));
  lab.answers(
      {patch_json("util.cpp", "modify", "int twice(int a) {\n  return 2 * a;\n}\n"),
       patch_json("add.hpp", "modify", good_cpp),
       patch_json("README.md", "modify", "Run test.sh, see [the guide](docs/guide.md).\n")});
  const auto ran =
      lab.improve({"--apply", "--auto-commit", "--loop", "--interval", "1ms", "--max-cycles", "4"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(lab.git("log --format=%b | sed -n 's/^Task: \\([a-z]*\\)-.*/\\1/p'") ==
        "hygiene\ntest\nlint\n");
  CHECK(lab.git("status --porcelain").empty());
}

TEST_CASE("Python: bad patches are rolled back to the last bit, and three strikes pause the task") {
  const repository_lab lab(python_files(), python_improve + "  may_change: [run_tests.py]\n");
  lab.answers({
      patch_json("shop.py", "modify", "def total(prices):\n    return sum(prices[2:])\n"), // proof
      patch_json("shop.py", "modify",
                 "def total(prices):\n    if not prices:\n        return 1\n    return "
                 "sum(prices)\n"), // gate
      patch_json("run_tests.py", "modify",
                 "import os\nos.makedirs('build', exist_ok=True)\n"
                 "open('build/junit.xml', 'w').write('<testsuite/>')\n"), // takes the test away
  });
  const auto before = lab.print();
  for (const auto* why : {"proof failed", "gate failed", "among the tests that passed"}) {
    const auto ran = lab.improve({"--apply", "--json"});
    INFO(ran.out << ran.err);
    CHECK(ran.code == 1);
    CHECK(ran.json().at("status") == "FAILED");
    CHECK(ran.json().at("failure_class") == "DETERMINISTIC");
    CHECK_THAT(ran.json().at("reason").get<std::string>(), Contains(why));
    CHECK((lab.print() == before));
    CHECK(lab.git("status --porcelain").empty());
  }
  const auto paused = lab.improve({"--apply", "--json"});
  CHECK(paused.code == 3);
  CHECK(paused.json().at("status") == "PAUSED");
  CHECK(paused.json().at("paused_tasks").size() == 1);
  CHECK_THAT(lab.improve({"report"}).out, Contains("DETERMINISTIC"));
  CHECK((lab.print() == before));
}

TEST_CASE("Python: a good patch counts by its JUnit report") {
  const repository_lab lab(python_files(), python_improve);
  lab.answers({patch_json("shop.py", "modify", "def total(prices):\n    return sum(prices)\n")});
  const auto ran = lab.improve({"--apply", "--once", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  CHECK(lab.git("status --porcelain") == " M shop.py\n");
  // What is not committed is a person's matter now.
  const auto next = lab.improve({"--apply", "--json"});
  CHECK(next.json().at("selected_task").is_null());
}

TEST_CASE("shell and documents: a lint error comes first, then the link, in a loop") {
  const repository_lab lab(shell_files(), shell_improve);
  lab.answers({patch_json("bin/greet", "modify", "#!/bin/sh\necho $(date)\n"),
               patch_json("README.md", "modify", "See [the guide](docs/guide.md).\n")});
  const auto ran = lab.improve(
      {"--apply", "--auto-commit", "--loop", "--interval", "10ms", "--max-cycles", "5"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(lab.git("log --format=%s") == "mends README.md\nmends bin/greet\nfirst\n");
  CHECK(std::filesystem::status(lab.path("bin/greet")).permissions() ==
        static_cast<std::filesystem::perms>(0755));
  CHECK(lab.state().at("status") == "COMPLETED");
}

TEST_CASE("edits of a person stop a cycle before it does anything") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  lab.put("README.md", "My notes.\n");
  const auto before = lab.print();
  const auto ran = lab.improve({"--apply", "--json"});
  CHECK(ran.code == 3);
  CHECK_THAT(ran.json().at("reason").get<std::string>(), Contains("README.md"));
  CHECK(lab.state().at("strikes").empty());
  CHECK((lab.print() == before));
}

TEST_CASE("a patch waits for a person, who approves these bytes and no others") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  const auto before = lab.print();
  const auto ran = lab.improve({"--apply", "--approve", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 3);
  CHECK((lab.print() == before));
  const auto digest = ran.json().at("execution_result").at("patch").at("digest").get<std::string>();
  const auto other = lab.improve({"--apply", "--approve"});
  CHECK(other.code == 5);
  CHECK_THAT(other.err, Contains("/patch.diff") && Contains("--approved " + digest) &&
                            Contains(" improve retry test-"));
  CHECK_THAT(lab.improve({"report"}).out,
             Contains("patch: " + lab.path("_outputs")) &&
                 Contains("+inline int add(int a, int b) { return a + b; }") &&
                 Contains("to drop it: boyd improve retry test-"));
  CHECK(lab.improve({"--apply", "--resume"}).code == 1);
  CHECK(lab.improve({"--apply", "--resume", "--approved", "abc"}).code == 1);
  CHECK((lab.print() == before));
  const auto done = lab.improve({"--apply", "--resume", "--approved", digest, "--json"});
  INFO(done.out << done.err);
  CHECK(done.json().at("outcome") == "SUCCESS");
  CHECK(lab.get("add.hpp") == good_cpp);
}

TEST_CASE(
    "case 49 patch-half-applied: a kill while it verifies is not forgotten, and a resume ends it") {
  const repository_lab lab(cpp_files(), cpp_improve);
  const auto gate = waiting_gate(lab);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  {
    program first(lab.argv({"--apply"}));
    REQUIRE(first.wait_for_stderr("verifying: the gate"));
    first.signal(SIGKILL);
    first.finish();
  }
  CHECK(lab.state().at("phase") == "VERIFY");
  CHECK(lab.state().at("last_completed_phase") == "EXECUTE");
  const auto other = lab.improve({"--apply"});
  CHECK(other.code == 5);
  CHECK_THAT(other.err, Contains("--resume"));
  write_file(gate, "exit 0\n");
  const auto done = lab.improve({"--apply", "--resume", "--json"});
  INFO(done.out << done.err);
  CHECK(done.json().at("outcome") == "SUCCESS");
  CHECK(lab.get("add.hpp") == good_cpp);
}

TEST_CASE("killed while it verifies, then edited by a person: the edit stays, the rest goes back") {
  const repository_lab lab(cpp_files(), cpp_improve);
  waiting_gate(lab);
  lab.answers({json{{"summary", "two"},
                    {"files",
                     {{{"path", "add.hpp"}, {"action", "modify"}, {"content", good_cpp}},
                      {{"path", "new.txt"}, {"action", "create"}, {"content", "x\n"}}}}}
                   .dump()});
  {
    program first(lab.argv({"--apply"}));
    REQUIRE(first.wait_for_stderr("verifying: the gate"));
    first.signal(SIGKILL);
    first.finish();
  }
  CHECK(lab.get("new.txt") == "x\n");
  lab.put("add.hpp", "// a person's\n");
  const auto done = lab.improve({"--apply", "--resume", "--json"});
  INFO(done.out << done.err);
  CHECK(done.json().at("status") == "PAUSED");
  CHECK_THAT(done.json().at("reason").get<std::string>(), Contains("add.hpp"));
  CHECK(lab.get("add.hpp") == "// a person's\n");
  CHECK_FALSE(std::filesystem::exists(lab.path("new.txt")));
  CHECK(lab.state().at("strikes").empty());
}

TEST_CASE("only one cycle works on a repository, and a lock of the dead is taken over") {
  const repository_lab lab(cpp_files(), cpp_improve);
  const auto gate = waiting_gate(lab);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  program first(lab.argv({"--apply"}));
  REQUIRE(first.wait_for_stderr("verifying: the gate"));
  const auto second = lab.improve({"--dry-run"});
  CHECK(second.code == 5);
  CHECK_THAT(second.err, Contains(std::to_string(first.pid())));
  // Interrupted, it ends with the cycle open.
  first.signal(SIGINT);
  const auto ended = first.finish();
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains("--resume"));
  write_file(lab.path("_outputs/agi_kernel/lock"),
             R"({"pid": 999999999, "start_ticks": 1, "nonce": "x", "renewed_ms": )" +
                 std::to_string(4'000'000'000'000) + "}");
  write_file(gate, "exit 0\n");
  CHECK(lab.improve({"--apply", "--resume", "--json"}).json().at("outcome") == "SUCCESS");
}

TEST_CASE("a test that fails only sometimes is quarantined, and no strike") {
  const repository_lab lab(
      {{"test.sh", "#!/bin/sh\nn=$(cat build/n 2>/dev/null || echo 0)\nmkdir -p build\n"
                   "echo $((n + 1)) > build/n\n"
                   "[ $((n % 2)) = 1 ] && echo 'ok 1 - moody' || echo 'not ok 1 - moody'\n"},
       {"README.md", "test.sh\n"}},
      cpp_improve);
  lab.answers({patch_json("README.md", "modify", "x\n")});
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("failure_class") == "FLAKY");
  CHECK(ran.json().at("outcome") == "PARTIAL");
  CHECK(ran.json().at("quarantined").size() == 1);
  CHECK(lab.state().at("strikes").empty());
  CHECK(lab.get("README.md") == "test.sh\n");
}

TEST_CASE("a command answers, a refusal comes back to it with the reason") {
  const repository_lab lab(cpp_files(), cpp_improve);
  const auto helper = lab.outside("suggest.sh");
  lab.configure("  scanners:\n    - {name: tests, source: test, parser: tap, argv: [./test.sh]}\n"
                "  executor: {type: command, argv: [sh, " +
                helper + "]}\n");
  write_file(lab.outside("good.json"), patch_json("add.hpp", "modify", good_cpp));
  write_file(lab.outside("bad.json"), patch_json(".git/hooks/pre-commit", "create", "#!/bin/sh\n"));
  write_file(helper, "if grep -q 'Your patch was refused: .*\\.git'; then cat '" +
                         lab.outside("good.json") + "'; else cat '" + lab.outside("bad.json") +
                         "'; fi\n");
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  CHECK(ran.json().at("execution_result").at("tries") == 2);
  CHECK(ran.json().at("execution_result").at("refusals").size() == 1);
  CHECK_FALSE(std::filesystem::exists(lab.path(".git/hooks/pre-commit")));
}

TEST_CASE("an executor that changes files itself is stopped, and they are named") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.configure(
      "  scanners:\n    - {name: tests, source: test, parser: tap, argv: [./test.sh]}\n"
      "  executor: {type: command, argv: [sh, -c, \"echo '// sneaky' >> add.hpp; echo done\"]}\n");
  const auto head = lab.git("rev-parse HEAD");
  auto tree = lab.print();
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 3);
  CHECK(ran.json().at("status") == "PAUSED");
  CHECK(ran.json().at("failure_class") == "ENVIRONMENT");
  CHECK(ran.json().at("execution_result").at("tries") == 0);
  CHECK_THAT(ran.json().at("reason").get<std::string>(), Contains("add.hpp"));
  CHECK(lab.state().at("strikes").empty());
  // It may have been a person: the file is as whoever wrote it left it, and all else as before.
  CHECK_THAT(lab.get("add.hpp"), Contains("return a - b") && Contains("// sneaky"));
  CHECK(lab.git("rev-parse HEAD") == head);
  auto now = lab.print();
  tree.erase("add.hpp");
  now.erase("add.hpp");
  CHECK((now == tree));
}

TEST_CASE("where nothing can be checked, the cycle says so, and how to name a scanner") {
  const repository_lab lab({{"note.txt", "text\n"}}, "  hygiene: {enabled: true}\n");
  const auto ran = lab.improve({});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, Contains(": nothing was checked but the hygiene of files: no tests or "
                               "scanners were found\n") &&
                          Contains("next: no tests were found") && Contains("scanners: [{name"));
}

TEST_CASE("scanners and tests get the umask of whoever runs them") {
  const repository_lab lab({{"test.sh", "#!/bin/sh\nmkdir -p build\numask > build/mask\n"
                                        "echo 'not ok 1 - a'\n"},
                            {"README.md", "test.sh\n"}},
                           cpp_improve);
  lab.answers({"nobody is asked"});
  const auto ran =
      program({"/bin/sh", "-c",
               "umask 026; exec '" + boyd_binary() + "' --config '" + lab.outside("improve.yaml") +
                   "' improve --repo '" + lab.root() + "'"})
          .finish();
  INFO(ran.out << ran.err);
  CHECK(lab.get("build/mask") == "0026\n");
  // What is Boyd's own is nobody else's.
  CHECK((std::filesystem::status(lab.state_path()).permissions() & std::filesystem::perms(077)) ==
        std::filesystem::perms::none);
}

TEST_CASE("a dry run leaves a patch that waits for a person") {
  const repository_lab lab(cpp_files(), cpp_improve);
  lab.answers({patch_json("add.hpp", "modify", good_cpp)});
  const auto waiting = lab.improve({"--apply", "--approve", "--json"}).json();
  const auto dry = lab.improve({});
  CHECK_THAT(dry.err, Contains("waits for a person stays"));
  const auto digest = waiting.at("execution_result").at("patch").at("digest").get<std::string>();
  const auto done = lab.improve({"--apply", "--resume", "--approved", digest, "--json"});
  INFO(done.out << done.err);
  CHECK(done.json().at("outcome") == "SUCCESS");
  CHECK(lab.get("add.hpp") == good_cpp);
}

TEST_CASE("the example of an improvement cycle looks at a repository") {
  const repository_lab lab({{"README.md", "[x](gone.md)\n"}}, "  gate: []\n");
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  const auto ran =
      program({boyd_binary(), "--config", std::string(top) + "/config/examples/improve.yaml",
               "improve", "--repo", lab.root(), "--dry-run", "--json"})
          .finish();
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(ran.json().at("selected_task").at("finding").at("rule") == "broken-link");
}

TEST_CASE("without configuration the usual tests are found, or what to write is said") {
  const repository_lab lab({{"a.c", "int a;\n"}}, "  gate: []\n");
  auto argv = lab.argv({"--dry-run"});
  argv.erase(argv.begin() + 1, argv.begin() + 3);
  const auto ran = program(argv).finish();
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, Contains("boyd-improve.yaml"));
  lab.put("boyd-improve.yaml", "version: 1\nimprove: {scaners: []}\n");
  const auto wrong = program(argv).finish();
  CHECK(wrong.code == 4);
  CHECK_THAT(wrong.err, Contains("boyd-improve.yaml:2:11") && Contains("did you mean scanners"));
}

} // namespace boyd::improve_test
