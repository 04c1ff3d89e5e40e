#include "boyd/config/tree.hpp"
#include "boyd/improve/settings.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "src/adapters/tz/zones.hpp"
#include "src/improve/proof_command.hpp"
#include "src/improve/scanning_internal.hpp"
#include "support/pch.hpp"
#include "tree_lab.hpp"

/// For every form of report: what it can find, its smallest proof, and that this passes and fails.
namespace boyd::proof_forms_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

class no_time final : public clock_port {
 public:
  utc_time now() const override { return {}; }
  steady_time steady() const override { return {}; }
};

/// A repository whose programs print what the test says.
class world {
 public:
  explicit world(scanner_settings s) {
    order.root = lab.root();
    order.settings.scanners = {std::move(s)};
    order.settings.hygiene.enabled = false;
    order.options.apply = true;
  }

  /// What the scanner prints from now on; "exit N" at its end is its code.
  void prints(const std::string& out, const std::string& err = {}, int code = 0) {
    end = {};
    end.out = out;
    end.err = err;
    end.exit_code = code;
  }

  /// The first finding as a task.
  cycle_state found() {
    auto seen = scanning(order, ports()).scan();
    cycle_state s;
    s.results = seen.results;
    s.candidates = candidates_of(seen.findings, s);
    REQUIRE_FALSE(s.candidates.empty());
    s.selected = s.candidates.front();
    return s;
  }
  check_end prove(const cycle_state& s) { return scanning(order, ports()).prove(*s.selected, s); }
  check_end guard(const cycle_state& s) { return scanning(order, ports()).guard(s); }

  test::tree_lab lab;
  improve_order order;
  std::vector<command_order> ran;
  command_end end;
  std::function<command_end(const command_order&)> answer;

 private:
  improve_ports& ports() { return ports_; }

  no_time clock_;
  std::shared_ptr<repository_provider> git_ = adapters::make_git_repositories();
  improve_ports ports_{clock_,
                       *lab.files,
                       *lab.inside,
                       *lab.tree,
                       *git_,
                       [this](const command_order& o) {
                         ran.push_back(o);
                         return answer ? answer(o) : end;
                       },
                       {},
                       {},
                       {},
                       {},
                       {},
                       {}};
};

scanner_settings scanner(report_format form, finding_source from = finding_source::test) {
  scanner_settings s;
  s.name = "s";
  s.source = from;
  s.parser = form;
  s.argv = {"scan"};
  return s;
}

struct printed {
  std::string out;
  std::string err{};
  int code = 0;
};

struct row {
  const char* name;
  report_format form;
  finding_source from;
  printed found, mended, gone;
};

const std::vector<row>& rows() {
  using enum report_format;
  using enum finding_source;
  static const std::vector<row> all{
      {"compiler's lines on standard error",
       lines,
       lint,
       {"", "a.c:3:1: error: bad [R1]\n", 1},
       {"", "", 0},
       {"", "a.c:9:1: error: bad [R1]\n", 1}},
      {"SARIF",
       sarif,
       lint,
       {R"({"runs":[{"results":[{"ruleId":"R","level":"error","message":{"text":"x"}}]}]})", "", 1},
       {R"({"runs":[{"results":[]}]})"},
       {"", "it crashed", 2}},
      {"ESLint",
       eslint,
       lint,
       {R"([{"filePath":"a.js","messages":[{"ruleId":"semi","severity":2,"message":"x","line":3}]}])",
        "", 1},
       {R"([{"filePath":"a.js","messages":[]}])"},
       {"", "it crashed", 2}},
      {"JUnit",
       junit,
       test,
       {R"(<testsuite><testcase name="a"><failure message="x"/></testcase></testsuite>)", "", 1},
       {R"(<testsuite><testcase name="a"/></testsuite>)"},
       {R"(<testsuite/>)"}},
      {"CTest",
       ctest,
       test,
       {"1/1 Test #1: a b ....***Failed 0.1 sec\n", "", 8},
       {"1/1 Test #1: a b ....   Passed 0.1 sec\n"},
       {"No tests were found!!!\n"}},
      {"pytest with blanks and dashes in its parameters",
       pytest,
       test,
       {"= short test summary info =\nFAILED t/test_a.py::test_x[a - b c] - assert 1 == 2\n", "",
        1},
       {"PASSED t/test_a.py::test_x[a - b c]\n"},
       {"PASSED t/test_a.py::test_x[a]\n"}},
      {"pytest, a module that cannot be imported",
       pytest,
       test,
       {"=== short test summary info ===\nERROR t/test_a.py - SyntaxError: x\n", "", 2},
       {"PASSED t/test_a.py::test_x\n"},
       {"PASSED t/test_b.py::test_y\n"}},
      {"TAP", tap, test, {"1..1\nnot ok 1 - adds\n", "", 1}, {"1..1\nok 1 - adds\n"}, {"1..0\n"}},
      {"TAP that gives up",
       tap,
       test,
       {"1..2\nBail out! no database\n", "", 1},
       {"1..1\nok 1 - adds\n"},
       {"1..0\n"}},
      {"Go",
       go_test,
       test,
       {"{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"TestA\"}\n", "", 1},
       {"{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}\n"},
       {"{\"Action\":\"pass\",\"Package\":\"p\"}\n"}},
      {"Go, a package that cannot be built",
       go_test,
       test,
       {"{\"Action\":\"fail\",\"Package\":\"p/q\"}\n", "# p/q\nq/x.go:3:1: undefined: y\n", 1},
       {"{\"Action\":\"pass\",\"Package\":\"p/q\",\"Test\":\"TestA\"}\n"},
       {"{\"Action\":\"pass\",\"Package\":\"p\"}\n"}},
      {"Cargo",
       cargo,
       test,
       {"test t::a ... FAILED\n\n---- t::a stdout ----\nleft: 0\n", "", 101},
       {"test t::a ... ok\ntest result: ok.\n"},
       {"test result: ok.\n"}},
      {"Cargo, a documentation test whose line moves",
       cargo,
       test,
       {"test src/lib.rs - add (line 3) ... FAILED\n", "", 101},
       {"test src/lib.rs - add (line 5) ... ok\n"},
       {"test result: ok.\n"}},
      {"Cargo, a crate that does not compile",
       cargo,
       test,
       {"", "error[E0425]: cannot find `y`\n --> src/lib.rs:4:14\nerror: could not compile `c`\n",
        101},
       {"test result: ok. 0 passed\n"},
       {"", "warning: nothing to do\n"}},
      {"Cargo, a test program that crashes",
       cargo,
       test,
       {"running 1 test\n",
        "error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit "
        "successfully: `t` (signal: 6)\n",
        101},
       {"test t::a ... ok\ntest result: ok.\n"},
       {"", ""}},
      {"an exit code", exit, test, {"bad\n", "", 1}, {"fine\n"}, {"bad\n", "", 2}},
  };
  return all;
}

} // namespace

TEST_CASE("whatever a scanner finds can be proved, and what is gone proves nothing") {
  for (const auto& r : rows()) {
    INFO(r.name);
    world w(scanner(r.form, r.from));
    w.prints(r.found.out, r.found.err, r.found.code);
    const auto s = w.found();
    CHECK(w.prove(s).failure == failure_kind::deterministic);
    w.prints(r.mended.out, r.mended.err, r.mended.code);
    const auto good = w.prove(s);
    INFO(good.detail);
    CHECK(good.passed);
    w.prints(r.gone.out, r.gone.err, r.gone.code);
    CHECK_FALSE(w.prove(s).passed);
  }
}

TEST_CASE("a build that fails has its place, and what it said") {
  world w(scanner(report_format::cargo));
  w.prints("",
           "   Compiling c\nerror[E0425]: cannot find `y`\n --> src/lib.rs:4:14\nerror: could "
           "not compile `c`\n",
           101);
  const auto s = w.found();
  CHECK(s.selected->what.test == "build");
  CHECK(s.selected->what.path == "src/lib.rs");
  CHECK(s.selected->what.line == 4);
  CHECK_THAT(s.selected->description, Contains("cannot find `y`"));
}

TEST_CASE("tests that a mended build uncovers are no regression, others are") {
  world w(scanner(report_format::go_test));
  w.prints("{\"Action\":\"fail\",\"Package\":\"p\"}\n", "# p\nx.go:1:1: bad\n", 1);
  const auto s = w.found();
  w.prints("{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"TestA\"}\n", "", 1);
  CHECK(w.prove(s).passed);
  CHECK(w.guard(s).passed);
  w.prints("{\"Action\":\"fail\",\"Package\":\"other\",\"Test\":\"TestA\"}\n", "", 1);
  CHECK_THAT(w.guard(s).detail, Contains("something new"));
}

TEST_CASE("SARIF: a rule may be named by its place, and a path is a URI") {
  const auto r = read_report(
      report_format::sarif, finding_source::lint, "s", "/repo",
      R"({"runs":[{"tool":{"driver":{"rules":[{"id":"R0"},{"id":"R1"}]}},"results":[{"ruleIndex":1,
 "message":{"text":"x"},"locations":[{"physicalLocation":{"artifactLocation":
 {"uri":"file:///repo/a%20b%2.c"}}}]}]}]})");
  REQUIRE(r.has_value());
  REQUIRE(r->findings.size() == 1);
  CHECK(r->findings[0].rule == "R1");
  CHECK(r->findings[0].path == "a b%2.c");
}

TEST_CASE("what a test says of a missing program is no lack of the machine") {
  world w(scanner(report_format::tap));
  w.prints("not ok 1 - a\n", "sh: foo: command not found\n", 1);
  const auto s = w.found();
  CHECK_FALSE(s.results.scanners.front().blocked);
  CHECK(w.prove(s).failure == failure_kind::deterministic);
  // Not in what it prints, and not before its last words.
  w.prints("sh: foo: command not found\n", "sh: foo: command not found\nwrong\n", 1);
  CHECK(w.prove(s).failure == failure_kind::deterministic);
  w.prints("", "sh: foo: command not found\n", 1);
  CHECK(w.prove(s).failure == failure_kind::environment);
  w.prints("not ok 1 - a\n", "it is not there\n", 127);
  CHECK(w.prove(s).failure == failure_kind::environment);
}

TEST_CASE("captured log lines of pytest are no failures") {
  const auto r = read_report(report_format::pytest, finding_source::test, "s", "/",
                             "ERROR    root:test_a.py:3 it is logged\n"
                             "==== short test summary info ====\nPASSED test_a.py::test_x\n");
  REQUIRE(r.has_value());
  CHECK(r->findings.empty());
  CHECK((r->passed == std::vector<std::string>{"test_a.py::test_x"}));
}

TEST_CASE("what has to be built is built before each scan and proof; its failure is a finding") {
  auto s = scanner(report_format::ctest);
  s.build = {"cmake", "--build", "build"};
  world w(s);
  bool builds = false;
  w.answer = [&](const command_order& o) {
    command_end e;
    const bool is_build = o.argv.front() == "cmake";
    e.exit_code = is_build && !builds ? 2 : 0;
    e.out = !is_build ? "1/1 Test #1: a ....   Passed 0.1 sec\n"
            : builds  ? ""
                      : "[1/2] x\nsrc/a.c:3:5: error: expected ';'\n";
    return e;
  };
  const auto task = w.found();
  CHECK(task.selected->what.is_group);
  CHECK(task.selected->what.path == "src/a.c");
  CHECK(w.ran.size() == 1);
  CHECK_FALSE(w.prove(task).passed);
  builds = true;
  CHECK(w.prove(task).passed);
  CHECK(w.ran.back().argv.front() == "scan");
}

TEST_CASE("a detected scanner is short in a dry run, and has its time where it proves something") {
  auto s = scanner(report_format::exit);
  s.is_detected = true;
  s.build = {"make"};
  world w(s);
  w.prints("bad", "", 1);
  w.order.options.apply = false;
  w.found();
  REQUIRE(w.ran.size() == 1);
  CHECK(w.ran[0].timeout == detected_timeout);
  w.order.options.apply = true;
  w.found();
  CHECK(w.ran.back().timeout == s.timeout);
  CHECK(w.ran.back().argv.front() == "make");
}

TEST_CASE("CTest is detected with its build") {
  const auto d = detect_scanners(
      [](const std::string& p) {
        return p == "CMakeLists.txt" || p == "build/CTestTestfile.cmake" ||
               p == "build/CMakeCache.txt";
      },
      [](const std::string&) { return std::string(); }, {}, {"build"});
  REQUIRE(d.scanners.size() == 1);
  CHECK((d.scanners[0].build == std::vector<std::string>{"cmake", "--build", "build"}));
}

TEST_CASE("a name is never a part of a shell's script") {
  auto s = scanner(report_format::tap);
  finding f;
  f.from = finding_source::test;
  f.test = "a; touch pwned";
  s.proof = {"sh", "-ec", "./run {test} \"{test}\" '{test}' \\\"{path}", "{test}"};
  const auto p = proof_command::of(s, f);
  REQUIRE(p.argv.size() == 4);
  CHECK(p.argv[2] ==
        "./run \"${BOYD_TEST}\" \"${BOYD_TEST}\" ''\"${BOYD_TEST}\"'' \\\"\"${BOYD_PATH}\"");
  CHECK(p.argv[3] == f.test);
  CHECK((p.environment.front() == std::pair<std::string, std::string>("BOYD_TEST", f.test)));
  // Also behind other programs.
  s.proof = {"nice", "/bin/bash", "-c", "run {test}"};
  CHECK_THAT(proof_command::of(s, f).argv.back(), !Contains("pwned"));
  // A word of another program's is its value, and nothing else.
  s.proof = {"run", "--only={test}"};
  CHECK(proof_command::of(s, f).argv.back() == "--only=a; touch pwned");
  // What would be read as an option, or is no value at all, proves with the whole scanner.
  f.test = "--delete";
  s.proof = {"run", "{test}"};
  CHECK((proof_command::of(s, f).argv == s.argv));
}

TEST_CASE("no name can stand in a program's code") {
  const std::string text =
      "version: 1\nimprove:\n  scanners:\n    - {name: t, source: test, parser: "
      "tap, argv: [x], proof: [python3, -c, \"run('{test}')\"]}\n";
  const auto zones = adapters::make_time_zones();
  const auto tree = config::load_improve(
      "/b.yaml", text, [](const std::string&) { return std::nullopt; }, *zones);
  REQUIRE(tree.has_value());
  const auto settings = read_settings(*tree, "/b.yaml");
  REQUIRE_FALSE(settings.has_value());
  CHECK_THAT(to_string(settings.error()), Contains("python3") && Contains("BOYD_TEST"));
}

TEST_CASE("what a scanner prints shows no secrets, in no part of a finding") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  world w(scanner(report_format::tap));
  w.order.settings.secrets = {"hunter-two-two"};
  w.prints("not ok 1 - with " + key + "\n# hunter-two-two\n", "", 1);
  const auto s = w.found();
  const auto end = w.prove(s);
  const auto all = state_json(s) + end.printed + end.detail + candidates_json(s);
  CHECK_THAT(all, !Contains(key) && !Contains("hunter-two-two"));
  CHECK_THAT(all, Contains("[redacted]"));
  w.prints("ok 1 - with " + key + "\n");
  CHECK(w.prove(s).passed);
}

} // namespace boyd::proof_forms_test
