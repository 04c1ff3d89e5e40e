#include "boyd/graph/lost_end.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"
#include "support/pch.hpp"

namespace boyd::lost_end_test {

using namespace std::chrono_literals;
using graph::compare_with_log;
using graph::lost_end;

namespace {

graph::anchor named(const std::string& line) {
  return {sha256_hex(line), "default", "c0ffee", utc_time{1s}};
}

auto lines_of(const std::string& log) {
  return [log](const std::string& head) { return graph::has_line(log, head); };
}

} // namespace

TEST_CASE("case R9: the line that the newest commit names is looked for", "[graph]") {
  const std::string log = "first\nsecond\nthird\n";
  for (const char* line : {"first", "second", "third"})
    CHECK(graph::has_line(log, sha256_hex(line)));
  for (const char* line : {"", "fourth", "thir", "third\n", "second\nthird"})
    CHECK_FALSE(graph::has_line(log, sha256_hex(line)));
  CHECK(graph::has_line("", std::string(graph::genesis)));
  CHECK_FALSE(graph::has_line("", sha256_hex("first")));

  std::vector<lost_end> lost;
  CHECK_FALSE(compare_with_log(lost, {named("third")}, lines_of(log), utc_time{2s}));
  CHECK_FALSE(compare_with_log(lost, {}, lines_of(""), utc_time{2s}));
  CHECK(graph::told(lost).empty());
}

TEST_CASE("case R9: a lost end is kept while the log goes on, until it is accepted or back",
          "[graph]") {
  std::vector<lost_end> lost;
  REQUIRE(compare_with_log(lost, {named("third")}, lines_of("first\n"), utc_time{2s}));
  REQUIRE(lost == std::vector<lost_end>{{named("third"), utc_time{2s}, false}});
  CHECK_THAT(graph::told(lost), Catch::Matchers::Contains(named("third").head.substr(0, 12)) &&
                                    Catch::Matchers::Contains("kernel default"));
  // The next cycle's line is there, and the cut stays known; found again, it is told once.
  CHECK_FALSE(compare_with_log(lost, {named("fourth")}, lines_of("first\nfourth\n"), utc_time{3s}));
  CHECK_FALSE(compare_with_log(lost, {named("third")}, lines_of("first\n"), utc_time{4s}));
  CHECK(lost.size() == 1);

  SECTION("put back") {
    CHECK(
        compare_with_log(lost, {named("third")}, lines_of("first\nsecond\nthird\n"), utc_time{5s}));
    CHECK(lost.empty());
  }
  SECTION("accepted, then cut again") {
    lost.front().accepted = true;
    CHECK(graph::told(lost).empty());
    CHECK_FALSE(compare_with_log(lost, {named("third")}, lines_of("first\n"), utc_time{5s}));
    CHECK(compare_with_log(lost, {named("fourth")}, lines_of("first\n"), utc_time{6s}));
    CHECK(lost.size() == 2);
    CHECK_FALSE(graph::told(lost).empty());
  }
}

TEST_CASE("case R9: of each commit that is named the line is looked for", "[graph]") {
  const std::string log = "first\nsecond\n";
  std::vector<lost_end> lost;
  auto other = named("third");
  other.kernel_id = "other";
  REQUIRE(compare_with_log(lost, {named("second"), other}, lines_of(log), utc_time{2s}));
  REQUIRE(lost.size() == 1);
  CHECK(lost.front().named == other);
  // Whichever of them is looked at first.
  lost.clear();
  REQUIRE(compare_with_log(lost, {other, named("second")}, lines_of(log), utc_time{2s}));
  REQUIRE(lost.size() == 1);
  CHECK(lost.front().named == other);
  CHECK(graph::heads_of({other, named("second"), named("third")}).size() == 2);
  CHECK(graph::heads_not_in(log, graph::heads_of({other, named("second")})) ==
        std::set<std::string>{other.head});
}

} // namespace boyd::lost_end_test
