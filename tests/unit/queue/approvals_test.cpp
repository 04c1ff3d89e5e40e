#include "boyd/queue/approvals.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <functional>
#include <set>

namespace boyd::approvals_test {

using namespace boyd;
using namespace boyd::queue;
using store::approval_outcome;
using store::approval_state;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

store::ask_approval question() {
  store::ask_approval op;
  op.approval_id = "approval-1";
  op.matter = {"k", "a", "d", "run_command", "hash of arguments", "/w", {}, "do it"};
  op.reason = "rule 1";
  op.node_id = "n1";
  op.fence = 7;
  op.lives = 1h;
  return op;
}

store::decide_approval verdict(const store::approval& row, bool approve, int number) {
  return {row.approval_id, row.hash, approve, "anna", {}, "decision-" + std::to_string(number)};
}

store::use_approval use(const store::approval& row, int number) {
  return {row.approval_id, row.hash, row.fence, "use-" + std::to_string(number)};
}

} // namespace

TEST_CASE("names of states and outcomes lead back to them", "[approvals]") {
  for (int i = 0; i < 7; ++i) {
    const auto s = static_cast<approval_state>(i);
    CHECK(approval_state_from(name_of(s)) == s);
  }
  for (int i = 0; i < 9; ++i) {
    const auto o = static_cast<approval_outcome>(i);
    CHECK(approval_outcome_from(name_of(o)) == o);
  }
  CHECK_FALSE(approval_state_from("perhaps"));
}

TEST_CASE("every part of what is asked is in its hash", "[approvals]") {
  const auto q = question();
  std::set<std::string> hashes{approval_hash(q.approval_id, q.matter, t0)};
  using change = std::function<void(store::approval_matter&)>;
  const std::vector<change> changes{
      [](auto& m) { m.kernel_id += "x"; }, [](auto& m) { m.agent_id += "x"; },
      [](auto& m) { m.dispatch_id += "x"; }, [](auto& m) { m.tool += "x"; },
      [](auto& m) { m.shown += "x"; }, [](auto& m) { m.arguments_sha256 += "x"; },
      [](auto& m) { m.workspace += "x"; }, [](auto& m) { m.before_sha256 += "x"; },
      // What moves from one part to the next is not the same.
      [](auto& m) {
        m.kernel_id = "ka";
        m.agent_id = "";
      }};
  for (const auto& c : changes) {
    auto m = q.matter;
    c(m);
    CHECK(hashes.insert(approval_hash(q.approval_id, m, t0)).second);
    CHECK(matter_hash(m) != matter_hash(q.matter));
  }
  CHECK(hashes.insert(approval_hash("approval-2", q.matter, t0)).second);
  CHECK(hashes.insert(approval_hash(q.approval_id, q.matter, t0 + 1ms)).second);
}

TEST_CASE("a stored request that was changed is void, whoever says yes", "[approvals]") {
  auto row = begin_approval(question(), t0).row;
  row.matter.shown = "something harmless";
  auto s = decide_approval(row, true, verdict(row, true, 1), t0);
  CHECK(s.outcome == approval_outcome::mutated);
  CHECK(s.row.state == approval_state::voided);
  auto whole = begin_approval(question(), t0).row;
  whole = decide_approval(whole, true, verdict(whole, true, 1), t0).row;
  whole.expires_at += 1h;
  s = use_approval(whole, true, use(whole, 1), t0);
  CHECK(s.outcome == approval_outcome::mutated);
  CHECK(s.row.state == approval_state::voided);
}

TEST_CASE("case 57 approval-replay: an attempt that is refused before anything is looked at is a "
          "line, and no more",
          "[approvals]") {
  const auto row = begin_approval(question(), t0).row;
  auto attempt = verdict(row, true, 1);
  attempt.refused = "only a person can decide";
  const auto s = decide_approval(row, true, attempt, t0);
  CHECK(s.outcome == approval_outcome::refused);
  CHECK(s.line.what == "approve");
  CHECK(s.line.outcome == approval_outcome::refused);
  CHECK(s.line.detail == "only a person can decide");
  auto with_line = row;
  ++with_line.lines;
  CHECK(s.row == with_line);
  CHECK(approval_outcome_from("refused") == approval_outcome::refused);
}

TEST_CASE(
    "case 57 approval-double, approval-replay: whatever comes in whatever order, one use at most",
    "[approvals]") {
  CHECK(rc::check("approvals", [](const std::vector<std::uint8_t>& events) {
    auto row = begin_approval(question(), t0).row;
    auto now = t0;
    bool lives = true;
    int number = 0;
    std::int64_t lines = row.lines;
    std::set<std::string> granted;
    bool said_no = false;
    bool changed = false;
    for (const auto e : events) {
      approval_step s;
      const auto closed = !is_open(row.state);
      switch (e % 10) {
      case 0:
        s = decide_approval(row, lives, verdict(row, true, ++number), now);
        break;
      case 1:
        s = decide_approval(row, lives, verdict(row, false, ++number), now);
        said_no = said_no || s.outcome == approval_outcome::accepted;
        break;
      case 2: // a repeat
        s = decide_approval(row, lives, verdict(row, true, number), now);
        break;
      case 3:
      case 4:
        s = use_approval(row, lives, use(row, ++number), now);
        break;
      case 5:
        s = use_approval(row, lives, use(row, number), now);
        break;
      case 6: {
        auto other = use(row, ++number);
        other.hash = "something else";
        s = use_approval(row, lives, other, now);
        RC_ASSERT(s.outcome != approval_outcome::accepted);
        break;
      }
      case 7:
        lives = false;
        continue;
      case 8:
        now += 7min;
        continue;
      default: {
        auto stranger = use(row, ++number);
        ++stranger.fence;
        s = use_approval(row, lives, stranger, now);
        RC_ASSERT(s.outcome != approval_outcome::accepted);
      }
      }
      if (s.repeated)
        continue;
      // Each attempt leaves one line; what is closed stays as it is.
      RC_ASSERT(s.line.number == ++lines);
      RC_ASSERT(!closed || s.row.state == row.state);
      if (s.line.what == "use" && s.outcome == approval_outcome::accepted) {
        granted.insert(s.row.use_id);
        RC_ASSERT(lives && !said_no && now < row.expires_at && !changed);
      }
      changed = changed || s.row.state == approval_state::voided;
      row = s.row;
    }
    RC_ASSERT(granted.size() <= 1);
  }));
}

} // namespace boyd::approvals_test
