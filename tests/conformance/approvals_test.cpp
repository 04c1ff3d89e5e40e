#include "boyd/core/sha256.hpp"
#include "boyd/queue/approvals.hpp"
#include "harness.hpp"

#include <thread>

namespace boyd::approvals_test {

using namespace boyd;
using namespace boyd::test;
using store::approval_outcome;
using store::approval_state;
using store::ask_approval;
using store::find_approval;
using store::list_approvals;
using store::sweep_approvals;
using store::withdraw_approvals;

namespace {

constexpr milliseconds long_life = 24h;

std::string approval_id(int number) {
  return "approval-" + std::to_string(1000 + number);
}

/// One running dispatch.
claimed_dispatch running(dispatch_store& s, int number = 1, const std::string& node = "n1") {
  enqueue(s, {spec(number, "a", 10, "c" + std::to_string(number))});
  auto claimed = claim(s, node, 1);
  REQUIRE(claimed.size() == 1);
  return claimed.front();
}

ask_approval question(int number, const claimed_dispatch& run, const std::string& arguments = "{}",
                      milliseconds lives = long_life) {
  ask_approval op;
  op.approval_id = approval_id(number);
  op.matter.kernel_id = "k";
  op.matter.agent_id = "a";
  op.matter.dispatch_id = run.row.dispatch_id;
  op.matter.tool = "run_command";
  op.matter.arguments_sha256 = sha256_hex(arguments);
  op.matter.workspace = "/srv/work";
  op.matter.shown = "run_command\n" + arguments;
  op.reason = "rule 1 of the agent's policy requires approval";
  op.node_id = "n1";
  op.fence = run.row.fence;
  op.lives = lives;
  return op;
}

store::decide_approval verdict(const store::approval& row, bool approve, int number = 1) {
  store::decide_approval op;
  op.approval_id = row.approval_id;
  op.hash = row.hash;
  op.approve = approve;
  op.by = "anna";
  op.note = "as agreed";
  op.decision_id = "decision-" + std::to_string(number);
  return op;
}

store::use_approval use(const store::approval& row, int number = 1) {
  store::use_approval op;
  op.approval_id = row.approval_id;
  op.hash = row.hash;
  op.fence = row.fence;
  op.use_id = "use-" + std::to_string(number);
  return op;
}

find_approval::story story(dispatch_store& s, const std::string& id) {
  auto found = ask(s, find_approval{id});
  REQUIRE(found);
  return *found;
}

/// What was tried and what came of it, in order.
std::vector<std::string> trail(dispatch_store& s, const std::string& id) {
  std::vector<std::string> out;
  for (const auto& l : story(s, id).trail)
    out.push_back(l.what + ":" + std::string(queue::name_of(l.outcome)));
  return out;
}

using lines = std::vector<std::string>;

} // namespace

TEST_CASE("an action is asked for, approved and used, once") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto asked = ask(s, question(1, run));
  CHECK(asked.fresh);
  CHECK(asked.row.state == approval_state::pending);
  CHECK(asked.row.expires_at - asked.row.created_at == long_life);
  CHECK(asked.row.hash ==
        queue::approval_hash(asked.row.approval_id, asked.row.matter, asked.row.expires_at));
  // Before anybody has decided.
  CHECK(ask(s, use(asked.row)).outcome == approval_outcome::not_approved);
  const auto decided = ask(s, verdict(asked.row, true));
  CHECK(decided.outcome == approval_outcome::accepted);
  REQUIRE(decided.row);
  CHECK(decided.row->state == approval_state::approved);
  CHECK(decided.row->decided_by == "anna");
  CHECK(decided.row->note == "as agreed");
  const auto used = ask(s, use(asked.row));
  CHECK(used.outcome == approval_outcome::accepted);
  REQUIRE(used.row);
  CHECK(used.row->state == approval_state::used);
  CHECK(ask(s, use(asked.row, 2)).outcome == approval_outcome::used);
  CHECK(ask(s, verdict(asked.row, false, 2)).outcome == approval_outcome::used);
  CHECK(trail(s, asked.row.approval_id) == lines{"ask:accepted", "use:not_approved",
                                                 "approve:accepted", "use:accepted", "use:used",
                                                 "reject:used"});
  const auto found = story(s, approval_id(1).substr(0, 12));
  CHECK(found.row.matter == question(1, run).matter);
  CHECK(found.row.lines == 6);
  REQUIRE(found.trail.size() == 6);
  CHECK(found.trail[2].by == "anna");
  CHECK(found.trail[2].detail == "as agreed");
}

TEST_CASE("requests that are said again change nothing more") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto q = question(1, run);
  const auto first = ask(s, q);
  CHECK(ask(s, q).row == first.row);
  for (int i = 0; i < 2; ++i)
    CHECK(ask(s, verdict(first.row, true)).outcome == approval_outcome::accepted);
  for (int i = 0; i < 2; ++i)
    CHECK(ask(s, use(first.row)).outcome == approval_outcome::accepted);
  CHECK(trail(s, approval_id(1)) == lines{"ask:accepted", "approve:accepted", "use:accepted"});
}

TEST_CASE("case 57 approval-double, approval-replay, approval-mutated: an approval that is decided "
          "twice, replayed or changed has one effect") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  SECTION("double: the first word holds") {
    const auto row = ask(s, question(1, run)).row;
    CHECK(ask(s, verdict(row, true, 1)).outcome == approval_outcome::accepted);
    CHECK(ask(s, verdict(row, true, 2)).outcome == approval_outcome::decided);
    CHECK(ask(s, verdict(row, false, 3)).outcome == approval_outcome::decided);
    CHECK(story(s, approval_id(1)).row.state == approval_state::approved);
    CHECK(trail(s, approval_id(1)) ==
          lines{"ask:accepted", "approve:accepted", "approve:decided", "reject:decided"});
  }
  SECTION("a no stays a no") {
    const auto row = ask(s, question(1, run)).row;
    CHECK(ask(s, verdict(row, false, 1)).outcome == approval_outcome::accepted);
    CHECK(ask(s, verdict(row, true, 2)).outcome == approval_outcome::decided);
    CHECK(ask(s, use(row)).outcome == approval_outcome::decided);
    CHECK(story(s, approval_id(1)).row.state == approval_state::rejected);
  }
  SECTION("mutated before the decision: the person saw something else") {
    const auto row = ask(s, question(1, run)).row;
    auto other = verdict(row, true);
    other.hash = sha256_hex("something else");
    CHECK(ask(s, other).outcome == approval_outcome::mutated);
    CHECK(story(s, approval_id(1)).row.state == approval_state::pending);
    CHECK(ask(s, verdict(row, true, 2)).outcome == approval_outcome::accepted);
    CHECK(trail(s, approval_id(1)) == lines{"ask:accepted", "approve:mutated", "approve:accepted"});
  }
  SECTION("mutated before the use: the approval is void") {
    const auto row = ask(s, question(1, run)).row;
    ask(s, verdict(row, true));
    auto other = use(row);
    auto matter = row.matter;
    matter.arguments_sha256 = sha256_hex("{\"command\": \"rm -rf /\"}");
    other.hash = queue::approval_hash(row.approval_id, matter, row.expires_at);
    CHECK(ask(s, other).outcome == approval_outcome::mutated);
    CHECK(ask(s, use(row, 2)).outcome == approval_outcome::voided);
    CHECK(story(s, approval_id(1)).row.state == approval_state::voided);
    CHECK(trail(s, approval_id(1)) ==
          lines{"ask:accepted", "approve:accepted", "use:mutated", "use:voided"});
  }
  SECTION("replay: by another request's approval, and by another run") {
    const auto row = ask(s, question(1, run)).row;
    const auto second = ask(s, question(2, run, "{\"n\": 2}")).row;
    ask(s, verdict(row, true));
    auto borrowed = use(second);
    borrowed.hash = row.hash;
    CHECK(ask(s, borrowed).outcome == approval_outcome::not_approved);
    auto stranger = use(row);
    ++stranger.fence;
    CHECK(ask(s, stranger).outcome == approval_outcome::withdrawn);
    CHECK(ask(s, use(row, 2)).outcome == approval_outcome::accepted);
    CHECK(ask(s, use(row, 3)).outcome == approval_outcome::used);
  }
  SECTION("nobody's") {
    auto row = ask(s, question(1, run)).row;
    row.approval_id = approval_id(9);
    const auto r = ask(s, verdict(row, true));
    CHECK(r.outcome == approval_outcome::not_found);
    CHECK_FALSE(r.row);
    CHECK(ask(s, use(row)).outcome == approval_outcome::not_found);
    CHECK_FALSE(ask(s, find_approval{approval_id(9)}));
  }
}

TEST_CASE("case 57 approval-late: a late word and a late use are refused") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto kept = ask(s, question(3, run, "{\"n\": 3}")).row;
  const auto unused = ask(s, question(2, run, "{\"n\": 2}", w->span())).row;
  CHECK(ask(s, verdict(unused, true)).outcome == approval_outcome::accepted);
  const auto late = ask(s, question(1, run, "{\"n\": 1}", w->span())).row;
  REQUIRE(w->after_span([&] {
    return story(s, late.approval_id).row.state == approval_state::expired &&
           story(s, unused.approval_id).row.state == approval_state::expired;
  }));
  CHECK(ask(s, verdict(late, true)).outcome == approval_outcome::expired);
  CHECK(ask(s, use(unused)).outcome == approval_outcome::expired);
  CHECK(trail(s, late.approval_id) == lines{"ask:accepted", "approve:expired"});
  CHECK(trail(s, unused.approval_id) == lines{"ask:accepted", "approve:accepted", "use:expired"});
  const auto open = ask(s, list_approvals{.kernel_id = "k", .open = true, .ids = {}});
  REQUIRE(open.size() == 1);
  CHECK(open.front().approval_id == kept.approval_id);
  const auto swept = ask(s, sweep_approvals{});
  CHECK(swept.ended == 0); // the attempts have ended both
  CHECK(swept.pending == 1);
  CHECK(swept.approved == 0);
}

TEST_CASE("what belongs to a run that is over can be neither decided nor used") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto pending = ask(s, question(1, run, "{\"n\": 1}")).row;
  const auto approved = ask(s, question(2, run, "{\"n\": 2}")).row;
  ask(s, verdict(approved, true));
  CHECK(settle(s, run, settle_to::done) == settle_result::accepted);
  CHECK(story(s, pending.approval_id).row.state == approval_state::withdrawn);
  CHECK(ask(s, list_approvals{.kernel_id = {}, .open = true, .ids = {}}).empty());
  CHECK(ask(s, verdict(pending, true, 2)).outcome == approval_outcome::withdrawn);
  CHECK(ask(s, use(approved)).outcome == approval_outcome::withdrawn);
  CHECK(refusal(s, question(3, run)) == errc::stale_fence);
  SECTION("and is ended by a sweep where nobody tried") {
    const auto next = running(s, 2);
    const auto left = ask(s, question(4, next)).row;
    settle(s, next, settle_to::done);
    CHECK(ask(s, sweep_approvals{}).ended == 1);
    CHECK(ask(s, sweep_approvals{}).ended == 0);
    CHECK(trail(s, left.approval_id) == lines{"ask:accepted", "withdraw:accepted"});
  }
}

TEST_CASE("a run that goes on withdraws what it does not wait for any more") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto first = ask(s, question(1, run, "{\"n\": 1}")).row;
  const auto second = ask(s, question(2, run, "{\"n\": 2}")).row;
  withdraw_approvals op;
  op.dispatch_id = run.row.dispatch_id;
  op.fence = run.row.fence;
  op.approval_id = first.approval_id;
  op.why = "nobody decided";
  CHECK(ask(s, op).ended == std::vector<std::string>{first.approval_id});
  CHECK(story(s, second.approval_id).row.state == approval_state::pending);
  CHECK(ask(s, verdict(first, true)).outcome == approval_outcome::withdrawn);
  op.approval_id.clear();
  CHECK(ask(s, op).ended == std::vector<std::string>{second.approval_id});
  CHECK(ask(s, op).ended.empty());
}

TEST_CASE("a request that is held waits for its dispatch's next run") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto asked = ask(s, question(1, run)).row;
  withdraw_approvals hold;
  hold.dispatch_id = run.row.dispatch_id;
  hold.fence = run.row.fence;
  hold.hold = true;
  CHECK(ask(s, hold).ended.size() == 1);
  run_outcome failed;
  failed.execution = execution_verdict::failed;
  failed.failure = failure_class::policy;
  REQUIRE(settle(s, run, settle_to::failed, 0ms, failed) == settle_result::accepted);
  CHECK(ask(s, sweep_approvals{}).ended == 0);
  CHECK(story(s, asked.approval_id).row.state == approval_state::pending);
  CHECK(ask(s, verdict(asked, true)).outcome == approval_outcome::accepted);
  // Nobody runs that could use it.
  CHECK(ask(s, use(asked)).outcome == approval_outcome::withdrawn);
  REQUIRE(ask(s, store::retry_dispatch{run.row.dispatch_id}).result == settle_result::accepted);
  const auto again = claim(s, "n1", 1);
  REQUIRE(again.size() == 1);
  SECTION("the same request has the answer, once") {
    const auto adopted = ask(s, question(2, again.front()));
    CHECK_FALSE(adopted.fresh);
    CHECK(adopted.row.approval_id == asked.approval_id);
    CHECK(adopted.row.state == approval_state::approved);
    CHECK(adopted.row.fence == again.front().row.fence);
    CHECK(ask(s, use(adopted.row, 2)).outcome == approval_outcome::accepted);
    CHECK(ask(s, use(adopted.row, 3)).outcome == approval_outcome::used);
    // Another time it is asked for anew.
    const auto anew = ask(s, question(3, again.front()));
    CHECK(anew.fresh);
    CHECK(anew.row.approval_id == approval_id(3));
  }
  SECTION("another request has not") {
    const auto other = ask(s, question(2, again.front(), "{\"n\": 2}"));
    CHECK(other.fresh);
    CHECK(other.row.state == approval_state::pending);
  }
}

TEST_CASE("a no is the answer for the whole dispatch") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  const auto asked = ask(s, question(1, run)).row;
  ask(s, verdict(asked, false));
  const auto nagging = ask(s, question(2, run));
  CHECK_FALSE(nagging.fresh);
  CHECK(nagging.row.approval_id == asked.approval_id);
  CHECK(nagging.row.state == approval_state::rejected);
  CHECK(trail(s, asked.approval_id) == lines{"ask:accepted", "reject:accepted", "ask:decided"});
}

TEST_CASE("two nodes: one decision, one use") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  if (!w->shared())
    return;
  auto& s = w->store();
  const auto row = ask(s, question(1, running(s))).row;
  constexpr int nodes = 4;
  const auto race = [&](auto attempt) {
    std::atomic<int> accepted = 0;
    std::vector<std::thread> all;
    for (int i = 1; i <= nodes; ++i)
      all.emplace_back([&, i] {
        const auto mine = w->connect();
        if (!mine->open())
          return;
        const auto replies = mine->apply({store::operation{attempt(i)}});
        if (replies && std::get<store::approval_change>(replies->front()).outcome ==
                           approval_outcome::accepted)
          ++accepted;
      });
    for (auto& t : all)
      t.join();
    return accepted.load();
  };
  CHECK(race([&](int i) { return verdict(row, true, i); }) == 1);
  CHECK(race([&](int i) { return use(row, i); }) == 1);
  CHECK(story(s, row.approval_id).trail.size() == 1 + 2 * nodes);
}

TEST_CASE("a trail is bounded, and counts on") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto row = ask(s, question(1, running(s))).row;
  std::vector<store::operation> batch;
  for (int i = 0; i < queue::most_trail_lines + 10; ++i)
    batch.emplace_back(use(row, i));
  REQUIRE(s.apply(batch));
  const auto found = story(s, row.approval_id);
  CHECK(found.trail.size() == queue::most_trail_lines);
  CHECK(found.row.lines == queue::most_trail_lines + 11);
}

TEST_CASE("requests that cannot be are refused") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  auto q = question(1, run);
  q.matter.shown = std::string(queue::most_shown_bytes + 1, 'x');
  CHECK(refusal(s, q) == errc::limit_exceeded);
  q = question(1, run);
  q.lives = 0ms;
  CHECK(refusal(s, q) == errc::invalid_argument);
  q.lives = queue::longest_approval + 1ms;
  CHECK(refusal(s, q) == errc::invalid_argument);
  CHECK(refusal(s, find_approval{"short"}) == errc::invalid_argument);
  ask(s, question(1, run));
  ask(s, question(2, run, "{\"n\": 2}"));
  CHECK(refusal(s, find_approval{"approval-100"}) == errc::invalid_argument);
  CHECK(refusal(s, store::decide_approval{}) == errc::invalid_argument);
  CHECK(refusal(s, store::use_approval{}) == errc::invalid_argument);
  CHECK(refusal(s, withdraw_approvals{}) == errc::invalid_argument);
}

TEST_CASE("lists are newest first, and what is over is removed with its trail") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto run = running(s);
  for (int i = 1; i <= 3; ++i)
    ask(s, question(i, run, "{\"n\": " + std::to_string(i) + "}"));
  auto all = ask(s, list_approvals{});
  REQUIRE(all.size() == 3);
  CHECK(all.front().approval_id == approval_id(3));
  CHECK(all.front().matter.shown.empty());
  CHECK(ask(s, list_approvals{.kernel_id = "other", .ids = {}}).empty());
  CHECK(ask(s, list_approvals{.kernel_id = {}, .ids = {approval_id(2)}}).size() == 1);
  CHECK(ask(s, list_approvals{.kernel_id = {}, .ids = {}, .limit = 2}).size() == 2);
  ask(s, verdict(story(s, approval_id(1)).row, false));
  REQUIRE(w->after_span([&] {
    store::remove_finished op;
    op.age = 1ms;
    ask(s, op);
    return !ask(s, find_approval{approval_id(1)});
  }));
  CHECK(ask(s, list_approvals{}).size() == 2);
}

} // namespace boyd::approvals_test
