#include "boyd/improve/finding.hpp"
#include "support/pch.hpp"

#include <algorithm>

namespace boyd::report_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

scan_report read(report_format form, std::string_view text,
                 finding_source from = finding_source::test) {
  auto report = read_report(form, from, "scanner", "/repo", text);
  INFO((report ? std::string() : to_string(report.error())));
  REQUIRE(report.has_value());
  return *report;
}

} // namespace

TEST_CASE("a compiler's lines are findings with file, line and rule") {
  const auto r = read(report_format::lines,
                      "In file included from a.c:1:\n"
                      "/repo/src/a.c:12:7: error: 'x' undeclared (first use) [-Wundeclared]\n"
                      "./src/a.c:13: warning: unused variable [-Wunused]\r\n"
                      "src/a.c:12:7: note: each is told once\n"
                      "lib/b.py:3:80: E501 line too long (81 > 79)\n"
                      "see http://example.org:80: for more\n"
                      "12:30:01: it is late\n"
                      "\x1b[1msrc/c.c:1:1:\x1b[0m fatal error: no such file\n",
                      finding_source::lint);
  REQUIRE(r.findings.size() == 4);
  CHECK(r.findings[0].path == "src/a.c");
  CHECK(r.findings[0].line == 12);
  CHECK(r.findings[0].rule == "-Wundeclared");
  CHECK_FALSE(r.findings[0].is_warning);
  CHECK(r.findings[1].is_warning);
  CHECK(r.findings[2].rule == "E501");
  CHECK(r.findings[3].message == "no such file");
}

TEST_CASE("JUnit: failures and errors are findings, the skipped are neither") {
  const auto r = read(report_format::junit,
                      R"(<?xml version="1.0"?><testsuites><testsuite name="s" tests="4">
<testcase classname="m.T" name="good"/>
<testcase classname="m.T" name="bad" file="/repo/t.py" line="7"><failure message="1 &lt; 2">more</failure></testcase>
<testcase name="broken"><error message="boom"/></testcase>
<testcase name="later"><skipped/></testcase></testsuite></testsuites>)");
  REQUIRE(r.findings.size() == 2);
  CHECK(r.findings[0].test == "m.T.bad");
  CHECK(r.findings[0].path == "t.py");
  CHECK(r.findings[0].line == 7);
  CHECK_THAT(r.findings[0].message, Contains("1 < 2"));
  CHECK(r.findings[1].test == "broken");
  CHECK((r.passed == std::vector<std::string>{"m.T.good"}));
}

TEST_CASE("JUnit that is cut, too deep or has a document type is an error with its line") {
  const auto fails = [](const std::string& text) {
    const auto r = read_report(report_format::junit, finding_source::test, "s", "/", text);
    REQUIRE_FALSE(r.has_value());
    return to_string(r.error());
  };
  CHECK_THAT(fails("<a>\n<b>"), Contains("line 2"));
  CHECK_THAT(fails("<!DOCTYPE a [<!ENTITY x \"xxxx\">]><a>&x;</a>"), Contains("document type"));
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "<a>";
  CHECK_THAT(fails(deep), Contains("too deep"));
  CHECK_THAT(fails(""), Contains("cannot be read"));
}

TEST_CASE("SARIF: what is suppressed or has passed is no finding") {
  const auto r = read(report_format::sarif,
                      R"({"version":"2.1.0","runs":[{"results":[
 {"ruleId":"R1","level":"error","message":{"text":"bad"},"locations":[{"physicalLocation":
  {"artifactLocation":{"uri":"file:///repo/a.c"},"region":{"startLine":4}}}]},
 {"ruleId":"R2","message":{"text":"so so"}},
 {"ruleId":"R3","kind":"pass","message":{"text":"fine"}},
 {"ruleId":"R4","suppressions":[{"kind":"inSource"}],"message":{"text":"known"}}]}]})",
                      finding_source::lint);
  REQUIRE(r.findings.size() == 2);
  CHECK(r.findings[0].path == "a.c");
  CHECK(r.findings[0].line == 4);
  CHECK_FALSE(r.findings[0].is_warning);
  CHECK(r.findings[1].is_warning);
  CHECK_FALSE(read_report(report_format::sarif, finding_source::lint, "s", "/", "{}").has_value());
}

TEST_CASE("ESLint: severity 2 is an error") {
  const auto r = read(
      report_format::eslint,
      R"([{"filePath":"/repo/a.js","messages":[{"ruleId":"semi","severity":2,"message":"no ;","line":3},
         {"ruleId":"quotes","severity":1,"message":"'","line":4}]},{"filePath":"b.js"}])",
      finding_source::lint);
  REQUIRE(r.findings.size() == 2);
  CHECK(r.findings[0].rule == "semi");
  CHECK(r.findings[1].is_warning);
}

TEST_CASE("CTest, pytest, TAP, Go and Cargo tell which tests failed and which passed") {
  const auto c = read(report_format::ctest,
                      "      Start  1: adds\n"
                      "1/4 Test  #1: adds .............................   Passed    0.01 sec\n"
                      "2/4 Test #2: a b ..............................***Failed    0.01 sec\n"
                      "3/4 Test #3: gone .............................***Not Run   0.00 sec\n"
                      "4/4 Test #4: later ............................***Skipped   0.00 sec\n");
  REQUIRE(c.findings.size() == 2);
  CHECK(c.findings[0].test == "a b");
  CHECK_FALSE(c.findings[1].unfixable.empty());
  CHECK((c.passed == std::vector<std::string>{"adds"}));

  const auto p = read(report_format::pytest, "PASSED tests/test_a.py::test_one\n"
                                             "FAILED tests/test_a.py::test_two - assert 1 == 2\n"
                                             "ERROR tests/test_b.py - SyntaxError\n");
  REQUIRE(p.findings.size() == 2);
  CHECK(p.findings[0].test == "tests/test_a.py::test_two");
  CHECK(p.findings[0].path == "tests/test_a.py");
  CHECK(p.findings[0].message == "assert 1 == 2");
  CHECK(p.passed.size() == 1);

  const auto t = read(report_format::tap, "TAP version 13\n1..5\nok 1 - adds\n"
                                          "not ok 2 - takes away\n  ---\n  got: 3\n  ...\n"
                                          "not ok 3 - later # TO"
                                          "DO soon\nok 4 # skip not here\n"
                                          "not ok 5\nokay then\n");
  REQUIRE(t.findings.size() == 2);
  CHECK(t.findings[0].test == "takes away");
  CHECK_THAT(t.findings[0].message, Contains("got: 3"));
  CHECK(t.findings[1].test == "test 5");
  CHECK((t.passed == std::vector<std::string>{"adds"}));

  const auto g =
      read(report_format::go_test, "{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"TestA\","
                                   "\"Output\":\"a_test.go:5: bad\\n\"}\n"
                                   "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"TestA\"}\n"
                                   "{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestB\"}\n"
                                   "{\"Action\":\"fail\",\"Package\":\"p\"}\n"
                                   "{\"Action\":\"fail\",\"Package\":\"q\"}\n# q\n");
  REQUIRE(g.findings.size() == 2);
  CHECK(g.findings[0].test == "p.TestA");
  CHECK(g.findings[1].test == "q");

  const auto r = read(report_format::cargo, "test t::one ... ok\ntest t::two ... FAILED\n");
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].test == "t::two");
}

TEST_CASE("a task's id does not change with lines, numbers and the order of a report") {
  const auto ids = [](std::string_view text) {
    auto findings = read(report_format::lines, text, finding_source::lint).findings;
    return ids_of(findings);
  };
  const auto before = ids("a.c:3:1: error: line 3 has 81 characters\nb.c:1:1: error: other\n");
  const auto after = ids("b.c:9:1: error: other\na.c:33:2: error: line 33 has 90 characters\n");
  REQUIRE(before.size() == 2);
  CHECK(before[0] == after[1]);
  CHECK(before[1] == after[0]);
  CHECK(before[0] != before[1]);
  const auto twice = ids("a.c:3:1: error: same\na.c:9:1: error: same\n");
  CHECK(twice[0] != twice[1]);
  const auto tap = [](std::string_view text) {
    return ids_of(read(report_format::tap, text).findings).front();
  };
  CHECK(tap("not ok 2 - adds\n") == tap("ok 1 - new\nnot ok 7 - adds\n"));
}

TEST_CASE("a message does not keep what looks like a secret") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  const auto r = read(report_format::lines, "a.c:1:1: error: key " + key + " is here\n");
  REQUIRE(r.findings.size() == 1);
  CHECK_THAT(r.findings[0].message, !Contains(key));
}

} // namespace boyd::report_test
