#include "boyd/state/owed.hpp"

#include "support/pch.hpp"

using namespace boyd;
using namespace boyd::state;

namespace {

owed_commits cycle(const std::string& id, bool before = false) {
  return {id, cycle_status::failed, from_unix_ms(1'770'984'000'123), before};
}

} // namespace

TEST_CASE("owed commits are read as they were written", "[owed]") {
  const std::vector<owed_commits> owed{cycle("c1", true), cycle("c2")};
  CHECK(parse_owed(render_owed(owed)) == owed);
  CHECK(render_owed({}).empty());
  CHECK(parse_owed("").empty());
}

TEST_CASE("what is no owed commit is left out", "[owed]") {
  for (const char* text : {"nonsense", "{}", "7", "[7]", R"([{"cycle_id": "c1"}])",
                           R"([{"cycle_id": "", "status": "success", "ended": 1, "before": true}])",
                           R"([{"cycle_id": "c", "status": "odd", "ended": 1, "before": true}])",
                           R"([{"cycle_id": "c", "status": "error", "ended": "1", "before": 1}])"})
    CHECK(parse_owed(text).empty());
  CHECK(parse_owed(R"([1, {"cycle_id": "c", "status": "error", "ended": 1, "before": true}])")
            .size() == 1);
}

TEST_CASE("a cycle is owed its commits once, and the oldest ones are given up first", "[owed]") {
  std::vector<owed_commits> owed;
  add_owed(owed, cycle("c1"));
  add_owed(owed, cycle("c2"));
  CHECK(add_owed(owed, cycle("c1", true)) == 0);
  CHECK(owed == std::vector<owed_commits>{cycle("c2"), cycle("c1", true)});
  for (std::size_t i = owed.size(); i < most_owed; ++i)
    CHECK(add_owed(owed, cycle("x" + std::to_string(i))) == 0);
  CHECK(add_owed(owed, cycle("last")) == 1);
  CHECK(owed.size() == most_owed);
  CHECK(owed.front().cycle_id == "c1");
  CHECK(owed.back().cycle_id == "last");
}
