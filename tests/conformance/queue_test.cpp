#include "boyd/queue/transitions.hpp"
#include "harness.hpp"

#include <nlohmann/json.hpp>

namespace boyd::queue_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::unique_ptr<store_world> any_world() {
  return make_world(GENERATE(from_range(store_kinds())));
}

std::vector<std::string> ids(const std::vector<claimed_dispatch>& claimed) {
  std::vector<std::string> out;
  for (const auto& c : claimed)
    out.push_back(c.row.dispatch_id);
  return out;
}

using strings = std::vector<std::string>;

} // namespace

TEST_CASE("enqueue is idempotent per kernel, cycle and agent") {
  const auto w = any_world();
  auto& s = w->store();
  auto first = enqueue(s, {spec(1, "a"), spec(2, "b")});
  REQUIRE(first.inserted == 2);
  REQUIRE(first.dispatch_ids == strings{id_of(1), id_of(2)});
  auto again = enqueue(s, {spec(3, "b"), spec(4, "c"), spec(5, "a")});
  REQUIRE(again.inserted == 1);
  REQUIRE(again.dispatch_ids == strings{id_of(2), id_of(4), id_of(1)});
  REQUIRE(enqueue(s, {spec(6, "d", 10, "c2"), spec(7, "d", 10, "c2")}).dispatch_ids ==
          strings{id_of(6), id_of(6)});
  REQUIRE(row(s, id_of(2)).prompt == "prompt of b");
}

TEST_CASE("a malformed operation fails alone and leaves its batch alone") {
  const auto w = any_world();
  auto& s = w->store();
  auto bad = spec(1, "a");
  bad.metadata_json = "[1]";
  store::enqueue_cycle wrong{"k", "c1", {bad}, {}};
  store::enqueue_cycle right{"k", "c2", {spec(2, "a", 10, "c2")}, {}};
  auto replies = s.apply({wrong, right, wrong, right});
  REQUIRE(replies);
  REQUIRE(std::get<error>(replies->at(0)).code == errc::invalid_argument);
  REQUIRE(std::get<store::enqueue_cycle::reply>(replies->at(1)).inserted == 1);
  REQUIRE(std::get<error>(replies->at(2)).code == errc::invalid_argument);
  REQUIRE(std::get<store::enqueue_cycle::reply>(replies->at(3)).inserted == 0);
  bad.metadata_json = R"({"a":"\u0000"})";
  REQUIRE(refusal(s, store::enqueue_cycle{"k", "c1", {bad}, {}}) == errc::invalid_argument);
}

TEST_CASE("claims go by priority, then age, and carry a fence and a lease") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a", 5), spec(3, "b", 20), spec(2, "c", 20)});
  enqueue(s, {spec(4, "a", 50, "c2")});
  REQUIRE(ids(claim(s, "n1", 2, "a")) == strings{id_of(4), id_of(1)});
  const auto rest = claim(s, "n1", 10);
  REQUIRE(ids(rest) == strings{id_of(2), id_of(3)});
  REQUIRE(rest[0].row.fence == 1);
  REQUIRE(rest[0].row.attempt == 1);
  REQUIRE(rest[0].row.status == dispatch_status::running);
  REQUIRE(rest[0].row.lease_owner == "n1");
  REQUIRE(*rest[0].row.lease_expires_at - *rest[0].row.started_at == 30s);
  REQUIRE(rest[0].row.prompt == "prompt of c");
  REQUIRE(claim(s, "n2", 10).empty());
}

TEST_CASE("every transition carries its fence") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  const auto first = claim(s, "n1", 1).at(0);
  auto wrong = first;
  wrong.row.fence = 7;
  REQUIRE(settle(s, wrong, settle_to::done) == settle_result::stale);
  REQUIRE(row(s, id_of(1)).status == dispatch_status::running);
  REQUIRE(settle(s, first, settle_to::retry) == settle_result::accepted);
  REQUIRE(settle(s, first, settle_to::done) == settle_result::already_settled);
  const auto second = claim(s, "n2", 1).at(0);
  REQUIRE(second.row.fence == 2);
  REQUIRE(second.row.attempt == 2);
  run_outcome o;
  o.execution = execution_verdict::succeeded;
  o.summary = "all \"good\" \\ here";
  o.output = std::string(5000, 'x') + "\n'{}\"";
  o.usage.wall_ms = 5;
  o.usage.provider = "p";
  o.usage.model = "m \"1\"";
  o.usage.too_long = true;
  o.usage.sandbox = sandbox_report{"landlock", 7, {"sockets"}, false};
  REQUIRE(settle(s, second, settle_to::done, 0ms, o) == settle_result::accepted);
  const auto done = row(s, id_of(1));
  REQUIRE(done.status == dispatch_status::done);
  REQUIRE(done.outcome == o);
  REQUIRE(done.lease_owner.empty());
  REQUIRE(done.finished_at);
  REQUIRE(settle(s, first, settle_to::failed) == settle_result::stale);
  auto missing = first;
  missing.row.dispatch_id = id_of(99);
  REQUIRE(settle(s, missing, settle_to::done) == settle_result::not_found);
}

TEST_CASE("a fence is worth nothing to a node that does not hold the row") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  enqueue(s, {spec(2, "a", 5, "c2")});
  const auto ends_as = [&](int number, const std::string& node, std::int64_t fence, settle_to to) {
    return ask(s, store::settle{node, {{id_of(number), fence, to, 0ms, {}}}}).at(0);
  };
  // At the first attempt and at a later one, while it runs and afterwards.
  for (const std::int64_t fence : {1, 2}) {
    REQUIRE(claim(s, "n1", 1, "a").at(0).row.fence == fence);
    for (const auto to : {settle_to::done, settle_to::retry, settle_to::release})
      REQUIRE(ends_as(1, "n2", fence, to) == settle_result::stale);
    REQUIRE(row(s, id_of(1)).lease_owner == "n1");
    REQUIRE(ends_as(1, "n1", fence, fence == 1 ? settle_to::retry : settle_to::done) ==
            settle_result::accepted);
    REQUIRE(ends_as(1, "n1", fence, settle_to::done) == settle_result::already_settled);
    REQUIRE(ends_as(1, "n2", fence, settle_to::done) == settle_result::stale);
  }
  // Ended at its first attempt.
  claim(s, "n1", 1, "a");
  REQUIRE(ends_as(2, "n1", 1, settle_to::failed) == settle_result::accepted);
  REQUIRE(ends_as(2, "n2", 1, settle_to::failed) == settle_result::stale);
  REQUIRE(ends_as(2, "n1", 1, settle_to::failed) == settle_result::already_settled);
}

TEST_CASE("a settlement repeated in one batch is accepted once") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  claim(s, "n1", 1);
  const settlement item{id_of(1), 1, settle_to::done, 0ms, {}};
  REQUIRE(ask(s, store::settle{"n1", {item, item}}) ==
          std::vector{settle_result::accepted, settle_result::already_settled});
}

TEST_CASE("release and take-back do not count the attempt, retry does") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  REQUIRE(settle(s, claim(s, "n1", 1).at(0), settle_to::release) == settle_result::accepted);
  REQUIRE(row(s, id_of(1)).attempt == 0);
  REQUIRE(settle(s, claim(s, "n1", 1).at(0), settle_to::retry) == settle_result::accepted);
  REQUIRE(row(s, id_of(1)).attempt == 1);
  claim(s, "n1", 1);
  REQUIRE(ask(s, store::take_back{"n2"}).returned.empty());
  REQUIRE(ask(s, store::take_back{"n1"}).returned == strings{id_of(1)});
  const auto back = row(s, id_of(1));
  REQUIRE(back.status == dispatch_status::pending);
  REQUIRE(back.attempt == 1);
  REQUIRE(back.rescues == 1);
  REQUIRE(back.fence == 3);
  REQUIRE(back.lease_owner.empty());
}

TEST_CASE("a row whose nodes keep dying is given up, and an operator can bring it back") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  for (int i = 0; i < 2; ++i) {
    claim(s, "n1", 1);
    REQUIRE(ask(s, store::take_back{"n1", 2}).returned.size() == 1);
  }
  claim(s, "n1", 1);
  REQUIRE(ask(s, store::take_back{"n1", 2}).poisoned == strings{id_of(1)});
  REQUIRE(row(s, id_of(1)).status == dispatch_status::failed);
  const auto retried = ask(s, store::retry_dispatch{id_of(1)});
  REQUIRE(retried.result == settle_result::accepted);
  REQUIRE(retried.was == dispatch_status::failed);
  const auto fresh = row(s, id_of(1));
  REQUIRE(fresh.attempt == 0);
  REQUIRE(fresh.rescues == 0);
  REQUIRE(!fresh.finished_at);
  REQUIRE(claim(s, "n1", 1).at(0).row.fence == 4);
  REQUIRE(ask(s, store::retry_dispatch{id_of(1)}).result == settle_result::stale);
  REQUIRE(ask(s, store::retry_dispatch{id_of(9)}).result == settle_result::not_found);
}

TEST_CASE("a row that is tried again and cancelled has nothing of its earlier outcome") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  const auto c = claim(s, "n1", 1).at(0);
  settlement item{id_of(1), c.row.fence, settle_to::failed, 0ms, {}};
  item.outcome.output = "what it printed";
  item.outcome.summary = "said";
  REQUIRE(ask(s, store::settle{"n1", {item}}).at(0) == settle_result::accepted);
  REQUIRE(row(s, id_of(1)).outcome.output == "what it printed");
  REQUIRE(ask(s, store::retry_dispatch{id_of(1)}).result == settle_result::accepted);
  REQUIRE(ask(s, store::cancel_dispatch{id_of(1)}).result == settle_result::accepted);
  const auto cancelled = row(s, id_of(1));
  REQUIRE(cancelled.status == dispatch_status::cancelled);
  REQUIRE(cancelled.outcome.output.empty());
  REQUIRE(cancelled.outcome.summary.empty());
}

TEST_CASE("a lease ends by the store's clock, and its late owner is refused") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a"), spec(2, "b")});
  const auto lost = claim(s, "n1", 1, "a", w->span()).at(0);
  const auto kept = claim(s, "n1", 1, "b", 1h).at(0);
  const auto before = ask(s, store::rescue_expired{});
  REQUIRE(before.returned.empty());
  REQUIRE_FALSE(before.some_left);
  REQUIRE(before.next_in.value() > 0ms);
  REQUIRE(before.next_in.value() <= w->span());
  REQUIRE_FALSE(ask(s, store::rescue_expired{"n1"}).next_in);
  REQUIRE(w->after_span(
      [&] { return ask(s, store::rescue_expired{}).returned == strings{lost.row.dispatch_id}; }));
  const auto next = ask(s, store::rescue_expired{"n2"}).next_in.value();
  REQUIRE(next > 30min);
  REQUIRE(next <= 1h);
  store::renew_leases renew{"n1", {{lost.row.dispatch_id, 1}, {kept.row.dispatch_id, 1}}, 30s};
  REQUIRE(ask(s, renew).lost == strings{lost.row.dispatch_id});
  REQUIRE(settle(s, lost, settle_to::done) == settle_result::stale);
  REQUIRE(settle(s, kept, settle_to::done) == settle_result::accepted);
}

TEST_CASE("a node never rescues its own rows: it lives, and is told of them") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a"), spec(2, "b"), spec(3, "c"), spec(4, "d")});
  REQUIRE(claim(s, "n1", 1, "a", w->span()).size() == 1);
  REQUIRE(claim(s, "n1", 1, "b", 1h).size() == 1);
  REQUIRE(claim(s, "n2", 1, "c", w->span()).size() == 1);
  REQUIRE(claim(s, "n1", 1, "d", w->span()).size() == 1);
  store::rescue_expired mine{"n1"};
  REQUIRE(ask(s, mine).own.empty());
  store::rescue_expired::reply seen;
  REQUIRE(w->after_span([&] {
    auto r = ask(s, mine);
    seen.returned.insert(seen.returned.end(), r.returned.begin(), r.returned.end());
    seen.own = std::move(r.own);
    return seen.own.size() == 2 && !seen.returned.empty();
  }));
  REQUIRE(seen.returned == strings{id_of(3)});
  REQUIRE(seen.own[0].dispatch_id == id_of(1));
  REQUIRE(seen.own[0].kernel_id == "k");
  REQUIRE(seen.own[0].agent_id == "a");
  REQUIRE(seen.own[0].fence == 1);
  REQUIRE(seen.own[1].dispatch_id == id_of(4));
  mine.limit = 1;
  REQUIRE(ask(s, mine).own.size() == 1);
  // What the limit has left is to be looked at soon.
  store::rescue_expired other{"n3"};
  other.limit = 0;
  const auto left = ask(s, other);
  REQUIRE(left.some_left);
  REQUIRE(left.next_in.value() > 30min);
  REQUIRE(row(s, id_of(1)).status == dispatch_status::running);
  REQUIRE(row(s, id_of(1)).rescues == 0);
  // It renews what it runs, and another node takes what it does not.
  REQUIRE(ask(s, store::renew_leases{"n1", {{id_of(1), 1}}, 1h}).lost.empty());
  REQUIRE(ask(s, store::rescue_expired{"n2"}).returned == strings{id_of(4)});
  REQUIRE(ask(s, mine).own.empty());
}

TEST_CASE("an expired lease that nobody took is still held and can be renewed and settled") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  const auto c = claim(s, "n1", 1, "a", 1ms).at(0);
  REQUIRE(ask(s, store::renew_leases{"n2", {{id_of(1), 1}}, 1h}).lost.size() == 1);
  REQUIRE(ask(s, store::renew_leases{"n1", {{id_of(1), 1}}, 1h}).lost.empty());
  REQUIRE(w->after_span([&] { return true; }));
  REQUIRE(ask(s, store::rescue_expired{}).returned.empty());
  REQUIRE(settle(s, c, settle_to::done) == settle_result::accepted);
}

TEST_CASE("a retry waits for its delay") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a", 99)});
  enqueue(s, {spec(2, "a", 1, "c2")});
  enqueue(s, {spec(3, "b", 1, "c3")});
  REQUIRE(settle(s, claim(s, "n1", 1, "a").at(0), settle_to::retry, w->span()) ==
          settle_result::accepted);
  const auto due = ask(s, store::due_agents{});
  REQUIRE(due.next_in);
  REQUIRE(*due.next_in <= w->span());
  REQUIRE(due.due.size() == 2);
  REQUIRE(due.due[0].agent_id == "a");
  REQUIRE(due.due[0].count == 1);
  REQUIRE(due.due[0].priority == 1);
  REQUIRE(ids(claim(s, "n1", 5, "a")) == strings{id_of(2)});
  REQUIRE(w->after_span([&] { return ids(claim(s, "n1", 5, "a")) == strings{id_of(1)}; }));
  REQUIRE(!ask(s, store::due_agents{}).next_in);
}

TEST_CASE("an operator cancels what waits and learns who runs the rest") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a"), spec(2, "b")});
  claim(s, "n1", 1, "a");
  const auto running = ask(s, store::cancel_dispatch{id_of(1)});
  REQUIRE(running.was == dispatch_status::running);
  REQUIRE(running.fence == 1);
  REQUIRE(running.lease_owner == "n1");
  REQUIRE(ask(s, store::cancel_dispatch{id_of(2)}).result == settle_result::accepted);
  REQUIRE(row(s, id_of(2)).status == dispatch_status::cancelled);
  REQUIRE(ask(s, store::cancel_dispatch{id_of(2)}).result == settle_result::already_settled);
  REQUIRE(claim(s, "n1", 5, "b").empty());
}

TEST_CASE("lists filter, page and leave long texts out") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a"), spec(2, "b")});
  enqueue(s, {spec(3, "a", 10, "c2")});
  settle(s, claim(s, "n1", 1, "b").at(0), settle_to::failed);
  store::list_dispatches all;
  auto rows = ask(s, all);
  REQUIRE(rows.size() == 3);
  REQUIRE(rows[0].dispatch_id == id_of(3));
  REQUIRE(rows[0].prompt.empty());
  all.agent_id = "a";
  all.before = id_of(3);
  all.with_bodies = true;
  rows = ask(s, all);
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].prompt == "prompt of a");
  store::list_dispatches earlier;
  earlier.kernel_id = "k";
  earlier.not_cycle_id = "c2";
  earlier.limit = 1;
  rows = ask(s, earlier);
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].dispatch_id == id_of(2));
  earlier.finished_since = from_unix_ms(1);
  earlier.limit = 5;
  REQUIRE(ask(s, earlier).size() == 1);
  earlier.not_cycle_id = "c1";
  REQUIRE(ask(s, earlier).empty());
  store::list_dispatches failed;
  failed.kernel_id = "k";
  failed.cycle_id = "c1";
  failed.status = dispatch_status::failed;
  failed.finished_since = from_unix_ms(1);
  REQUIRE(ask(s, failed).size() == 1);
  REQUIRE(
      ask(s, store::count_by_status{"k"}) ==
      store::count_by_status::reply{{dispatch_status::pending, 2}, {dispatch_status::failed, 1}});
  REQUIRE(ask(s, store::count_by_status{"other"}).empty());
  store::list_dispatches ended;
  ended.kernel_id = "k";
  ended.ended_only = true;
  rows = ask(s, ended);
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].dispatch_id == id_of(2));
  store::list_dispatches others;
  others.kernel_id = "k";
  // Long enough that its text has memory of its own: a store must keep it while it reads.
  others.not_agent_ids = {"a", "c", "an-agent-that-was-never-configured"};
  REQUIRE(ask(s, others).size() == 1);
  others.status = dispatch_status::pending;
  REQUIRE(ask(s, others).empty());
  others.not_agent_ids = {"b"};
  REQUIRE(ask(s, others).size() == 2);
  const auto latest = ask(s, store::latest_per_agent{"k"});
  REQUIRE(latest.size() == 2);
  REQUIRE(latest[0].dispatch_id == id_of(3));
  REQUIRE(latest[1].dispatch_id == id_of(2));
}

TEST_CASE("a dispatch is found by its id or a prefix that only it has") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(12345678, "a"), spec(12345699, "b")});
  REQUIRE(row(s, id_of(12345678)).agent_id == "a");
  REQUIRE(row(s, "1234567").agent_id == "a");
  REQUIRE(refusal(s, store::find_dispatch{"123456"}) == errc::invalid_argument);
  REQUIRE(refusal(s, store::find_dispatch{"12345"}) == errc::invalid_argument);
  REQUIRE(!ask(s, store::find_dispatch{"123456%"}));
  // The last group, which is what listings show.
  auto named = spec(7, "c");
  named.dispatch_id = "019c56e2-1f40-7d35-8b0e-6a2f9d41c7e0";
  auto other = spec(8, "d");
  other.dispatch_id = "019c56e2-1f40-7d36-8b0e-6a2f9d41c7e1";
  enqueue(s, {named, other});
  REQUIRE(row(s, "6a2f9d41c7e1").agent_id == "d");
  REQUIRE(refusal(s, store::find_dispatch{"6a2f9d41"}) == errc::invalid_argument);
  REQUIRE(refusal(s, store::find_dispatch{"019c56e2"}) == errc::invalid_argument);
  REQUIRE(!ask(s, store::find_dispatch{"6a2f9d42"}));
  REQUIRE(!ask(s, store::find_dispatch{"a2f9d41c7e"}));
  REQUIRE(row(s, "019c56e2-1f40-7d36").agent_id == "d");
}

TEST_CASE("earlier attempts are remembered") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  run_outcome o;
  o.execution = execution_verdict::timed_out;
  o.failure = failure_class::transient;
  o.error = "too slow";
  settle(s, claim(s, "n1", 1).at(0), settle_to::retry, 0ms, o);
  const auto again = claim(s, "n2", 1).at(0);
  REQUIRE(again.row.outcome == run_outcome{});
  REQUIRE(again.row.attempts_json.find("too slow") != std::string::npos);
  REQUIRE(again.row.attempts_json.find("n1") != std::string::npos);
}

TEST_CASE("what a dispatch said before an operator's retry stays readable") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  const auto c = claim(s, "n1", 1).at(0);
  settlement item{id_of(1), c.row.fence, settle_to::done, 0ms, {}};
  const std::string half(queue::attempt_output_bytes - 1, 'x');
  item.outcome.output = half + "\u00e4 and more";
  item.outcome.output_cut = 7;
  item.outcome.verification = verification_verdict::passed;
  REQUIRE(ask(s, store::settle{"n1", {item}}).at(0) == settle_result::accepted);
  REQUIRE(ask(s, store::retry_dispatch{id_of(1)}).result == settle_result::accepted);
  const auto earlier = nlohmann::json::parse(row(s, id_of(1)).attempts_json);
  REQUIRE(earlier.size() == 1);
  REQUIRE(earlier[0]["to"] == "done");
  REQUIRE(earlier[0]["verification"] == name_of(verification_verdict::passed));
  // No character is cut in half, and what is missing is counted.
  REQUIRE(earlier[0]["output"] == half);
  REQUIRE(earlier[0]["output_cut"] == item.outcome.output.size() - half.size() + 7);
}

} // namespace boyd::queue_test
