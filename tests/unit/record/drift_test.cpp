#include "boyd/record/drift.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <vector>

namespace boyd::drift_test {

using namespace boyd::record;

namespace {

bool is_near(double l, double r) {
  return std::abs(l - r) < 1e-9;
}

} // namespace

TEST_CASE("drift: three parts, from the same to nothing in common", "[drift]") {
  const came_to run{{"C1", "C2"}, {R"(read_file {"path":"a", "n":1})"}, "The lamp wants oil."};
  CHECK(drift_of(run, run).is_none());
  // Neither the order of members, nor letter case and punctuation count.
  CHECK(drift_of(run, {{"C2", "C1"}, {R"(read_file {"n":1,"path":"a"})"}, "the LAMP wants oil!"})
            .is_none());
  const auto other = drift_of(run, {{}, {}, "No ships today"});
  CHECK(is_near(other.citations, 1));
  CHECK(is_near(other.actions, 1));
  CHECK(is_near(other.conclusion, 1));
  CHECK(is_near(other.whole(), 1));
  const auto some = drift_of(run, {{"C1", "C3"}, run.actions, "The lamp wants water."});
  CHECK(is_near(some.citations, 2.0 / 3));
  CHECK(is_near(some.actions, 0));
  CHECK(is_near(some.conclusion, 0.5));
  CHECK(drift_of({}, {}).is_none());
}

TEST_CASE("drift: it is between 0 and 1, and the same from both sides", "[drift]") {
  REQUIRE(rc::check([](const std::vector<std::string>& a, const std::vector<std::string>& b,
                       const std::string& x, const std::string& y) {
    const came_to l{a, b, x};
    const came_to r{b, a, y};
    const auto d = drift_of(l, r);
    const auto back = drift_of(r, l);
    for (const auto part : {d.citations, d.actions, d.conclusion, d.whole()})
      RC_ASSERT(part >= 0 && part <= 1);
    RC_ASSERT(is_near(d.whole(), back.whole()));
    RC_ASSERT(drift_of(l, l).is_none());
  }));
}

TEST_CASE("drift: tools answer as they are on record, and no other call", "[drift]") {
  attempt a;
  turn t;
  t.action = R"({"tools":[{"step":1,"call":"read_file {\"path\":\"a\"}"},
                          {"step":2,"call":"read_file {\"path\":\"a\"}"},
                          {"step":3,"call":"write_file {\"path\":\"b\"}"}]})";
  t.result = R"({"tools":[{"step":1,"ok":true,"hash":"h1"},{"step":2,"ok":true,"hash":"h2"},
                          {"step":3,"ok":false,"hash":"h3"}]})";
  a.turns.push_back(t);
  recorded_tools tools(a, {{"h1", "one"}, {"h2", "two"}, {"h3", "denied: no"}});
  const std::string path = R"({ "path": "a" })";
  CHECK(tools.answer("read_file", path) == std::pair<std::string, bool>{"one", false});
  CHECK(tools.answer("read_file", path) == std::pair<std::string, bool>{"two", false});
  CHECK(tools.answer("read_file", path) == std::pair<std::string, bool>{"two", false});
  CHECK(tools.answer("write_file", R"({"path":"b"})").second);
  const auto unknown = tools.answer("run_command", R"({"argv":["rm"]})");
  CHECK(unknown.second);
  CHECK_THAT(unknown.first, Catch::Matchers::Contains("nothing was done"));
  CHECK(actions_of(a).size() == 3);
  a.turns.front().action.insert(1, R"("kind":"agent_cli",)"); // of its own tools no model has one
  CHECK(actions_of(a).empty());
}

} // namespace boyd::drift_test
