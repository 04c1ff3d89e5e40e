#include "boyd/queue/transitions.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::transitions_test {

using namespace boyd;
using namespace boyd::queue;

namespace {

utc_time at(std::int64_t ms) {
  return from_unix_ms(ms);
}

/// Claimed by `node` at its fence 1.
queue_row claimed_by(const std::string& node) {
  dispatch_spec spec;
  spec.dispatch_id = "d";
  auto row = new_row(spec, at(1));
  claim_row(row, node, 30s, at(2));
  return row;
}

settlement ends(std::int64_t fence, settle_to to = settle_to::done) {
  return {"d", fence, to, 0ms, {}};
}

} // namespace

TEST_CASE("a running row is ended by its owner under its fence, and by nobody else") {
  for (const auto to : {settle_to::done, settle_to::failed, settle_to::cancelled, settle_to::retry,
                        settle_to::release}) {
    INFO(name_of(to));
    auto row = claimed_by("n1");
    CHECK(settle_row(row, "n2", ends(1, to), at(3)) == settle_result::stale);
    CHECK(settle_row(row, "", ends(1, to), at(3)) == settle_result::stale);
    CHECK(settle_row(row, "n1", ends(2, to), at(3)) == settle_result::stale);
    CHECK(holds(row, "n1", 1));
    CHECK(settle_row(row, "n1", ends(1, to), at(3)) == settle_result::accepted);
    CHECK(row.d.status != dispatch_status::running);
  }
}

TEST_CASE(
    "case 46 fd-exhaustion: what is given back time and again keeps its delay and its history") {
  auto row = claimed_by("n1");
  REQUIRE(settle_row(row, "n1", ends(1, settle_to::retry), at(3)) == settle_result::accepted);
  for (std::int64_t fence = 2; fence < 40; ++fence) {
    claim_row(row, "n1", 30s, at(static_cast<int>(fence)));
    auto back = ends(fence, settle_to::release);
    back.delay = 2s;
    const auto now = at(static_cast<int>(fence) + 1);
    REQUIRE(settle_row(row, "n1", back, now) == settle_result::accepted);
    CHECK(row.d.not_before == now + 2s);
    CHECK(row.d.attempt == 1);
  }
  const auto told = nlohmann::json::parse(row.d.attempts_json);
  REQUIRE(told.size() == 2);
  CHECK(told[0].at("to") == "retry");
  CHECK(told[1].at("fence") == 39);
}

TEST_CASE("a repeat is its own node's, as long as the row knows whose it was") {
  auto row = claimed_by("n1");
  REQUIRE(settle_row(row, "n1", ends(1, settle_to::retry), at(3)) == settle_result::accepted);
  CHECK(settle_row(row, "n1", ends(1), at(4)) == settle_result::already_settled);
  CHECK(settle_row(row, "n2", ends(1), at(4)) == settle_result::stale);
  // Claimed since by another node, it does not any more.
  claim_row(row, "n2", 30s, at(5));
  CHECK(settle_row(row, "n1", ends(1), at(6)) == settle_result::already_settled);
  CHECK(holds(row, "n2", 2));
  CHECK(settle_row(row, "n1", ends(2), at(6)) == settle_result::stale);
  CHECK(settle_row(row, "n2", ends(2), at(6)) == settle_result::accepted);
  CHECK(settle_row(row, "n1", ends(2), at(7)) == settle_result::stale);
}

TEST_CASE("who lost the row ends nothing, though nobody has claimed it since") {
  auto row = claimed_by("n1");
  rescue_row(row, 3, at(3));
  CHECK(settle_row(row, "n1", ends(1), at(4)) == settle_result::stale);
  CHECK(row.d.status == dispatch_status::pending);
}

} // namespace boyd::transitions_test
