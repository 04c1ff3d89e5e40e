#include "boyd/core/day.hpp"
#include "boyd/queue/spend.hpp"
#include "harness.hpp"
#include "support/telling.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <thread>

namespace boyd::spend_test {

using namespace boyd;
using namespace boyd::test;
using store::reserve_spend;
using store::settle_spend;
using store::sum_spend;
using store::usage_counts;

namespace {

constexpr auto agent_scope = "agent:k/a";
constexpr auto node_scope = "node:n1";

/// A call that may use `tokens` and cost `cost`, under these limits of both scopes.
reserve_spend call(const std::string& id, std::int64_t tokens, std::int64_t cost,
                   std::int64_t token_limit = 0, std::int64_t cost_limit = 0) {
  reserve_spend op;
  op.call_id = id;
  op.dispatch_id = "d";
  op.kernel_id = "k";
  op.agent_id = "a";
  op.provider_id = "p";
  op.model = "m";
  op.most.input = tokens;
  op.most.cost = cost;
  op.limits = {{node_scope, 0, 0}, {agent_scope, token_limit, cost_limit}};
  return op;
}

settle_spend end_of(const std::string& id, std::int64_t tokens, std::int64_t cost) {
  settle_spend op;
  op.call_id = id;
  op.used.output = tokens;
  op.used.cost = cost;
  return op;
}

/// What stands under both scopes: node's tokens and cost, agent's tokens and cost.
std::vector<std::int64_t> totals(dispatch_store& s) {
  // What costs nothing is granted, and says what stands.
  static int probes = 0;
  const auto r = ask(s, call("probe" + std::to_string(++probes), 0, 0));
  REQUIRE(r.totals.size() == 2);
  return {r.totals[0].tokens, r.totals[0].cost, r.totals[1].tokens, r.totals[1].cost};
}

using four = std::vector<std::int64_t>;

} // namespace

TEST_CASE("a budget of a day holds, and a call is counted once") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  const auto first = ask(s, call("c1", 60, 10, 100, 50));
  CHECK(first.granted);
  CHECK(first.refused_scope.empty());
  REQUIRE(first.totals.size() == 2);
  CHECK(first.totals[0].scope == node_scope);
  CHECK(first.totals[1].scope == agent_scope);
  CHECK(first.totals[1].tokens == 60);
  CHECK(first.totals[1].cost == 10);
  const auto over = ask(s, call("c2", 41, 1, 100, 50));
  CHECK_FALSE(over.granted);
  CHECK(over.refused_scope == agent_scope);
  REQUIRE(over.totals.size() == 2);
  CHECK(over.totals[1].tokens == 60);
  CHECK(ask(s, call("c2", 1, 41, 100, 50)).refused_scope == agent_scope);
  CHECK(totals(s) == four{60, 10, 60, 10});
  CHECK(ask(s, call("c3", 40, 40, 100, 50)).granted);
  // Said again, also when there would be no room for it, and in one batch.
  const auto again = s.apply({call("c1", 60, 10, 100, 50), call("c1", 60, 10, 100, 50)});
  REQUIRE(again);
  for (const auto& r : *again) {
    CHECK(std::get<reserve_spend::reply>(r).granted);
    CHECK(std::get<reserve_spend::reply>(r).totals.at(1).tokens == 100);
  }
  CHECK(totals(s) == four{100, 50, 100, 50});
}

TEST_CASE("what was used takes the place of what was reserved, once") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  ask(s, call("c1", 60, 10));
  ask(s, call("c2", 20, 10));
  ask(s, end_of("c1", 5, 2));
  CHECK(totals(s) == four{25, 12, 25, 12});
  ask(s, end_of("c1", 50, 9));
  ask(s, end_of("nobody", 50, 9));
  CHECK(totals(s) == four{25, 12, 25, 12});
  // More than was reserved: what was used is the truth.
  ask(s, end_of("c2", 200, 100));
  CHECK(totals(s) == four{205, 102, 205, 102});
  // A reservation and its end in one batch, then once more.
  for (int i = 0; i < 2; ++i) {
    const auto both = s.apply({call("c3", 7, 7), end_of("c3", 1, 1)});
    REQUIRE(both);
    CHECK(std::get<reserve_spend::reply>(both->front()).granted);
  }
  CHECK(totals(s) == four{206, 103, 206, 103});
  CHECK_FALSE(ask(s, call("c4", 1, 0, 206, 0)).granted);
  CHECK(ask(s, call("c4", 1, 0, 207, 0)).granted);
}

TEST_CASE("case W5: a call is counted under the model that its end names") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  auto nameless = call("c1", 60, 10);
  nameless.model.clear();
  REQUIRE(s.apply({nameless, call("c2", 5, 1)}));
  auto end = end_of("c1", 20, 3);
  end.model = "big";
  ask(s, end);
  end.model = "later"; // said again, nothing changes
  ask(s, end);
  ask(s, end_of("c2", 5, 1));
  sum_spend by_model;
  by_model.by = sum_spend::group::model;
  const auto models = ask(s, by_model);
  REQUIRE(models.size() == 2);
  CHECK(models[0].key == "p/big");
  CHECK(models[0].calls == 1);
  CHECK(models[0].used.cost == 3);
  CHECK(models[1].key == "p/m");
}

TEST_CASE("sums say who used how much, and what is only reserved") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  auto other = call("c3", 5, 1);
  other.kernel_id = "k2";
  other.model = "big";
  auto cheap = call("c4", 1, 1);
  cheap.agent_id = "b";
  REQUIRE(s.apply({call("c1", 60, 10), call("c2", 20, 10), other, cheap}));
  settle_spend end;
  end.call_id = "c1";
  end.used = {30, 10, 12, 4, 9};
  ask(s, end);
  const auto agents = ask(s, sum_spend{});
  REQUIRE(agents.size() == 3);
  CHECK(agents[0].key == "k/a");
  CHECK(agents[0].calls == 2);
  CHECK(agents[0].open_calls == 1);
  CHECK(agents[0].used == usage_counts{50, 10, 12, 4, 19});
  CHECK(agents[1].key == "k2/a");
  CHECK(agents[2].key == "k/b");
  sum_spend ask_models;
  ask_models.by = sum_spend::group::model;
  const auto models = ask(s, ask_models);
  REQUIRE(models.size() == 2);
  CHECK(models[0].key == "p/m");
  CHECK(models[0].used.cost == 20);
  CHECK(models[1].key == "p/big");
  sum_spend ask_days;
  ask_days.by = sum_spend::group::day;
  const auto days = ask(s, ask_days);
  REQUIRE(days.size() == 1);
  CHECK(is_day(days[0].key));
  CHECK(days[0].calls == 4);
  auto narrow = ask_models;
  narrow.kernel_id = "k2";
  CHECK(ask(s, narrow).size() == 1);
  narrow.kernel_id.clear();
  narrow.limit = 1;
  CHECK(ask(s, narrow).size() == 1);
  sum_spend ask_scopes;
  ask_scopes.by = sum_spend::group::scope;
  const auto scopes = ask(s, ask_scopes);
  REQUIRE(scopes.size() == 2);
  CHECK(scopes[0].key == agent_scope);
  CHECK(scopes[1].key == node_scope);
  CHECK(scopes[1].calls == 0);
  CHECK(scopes[1].used == usage_counts{68, 0, 0, 0, 21});
  sum_spend past;
  past.from_day = "2001-01-01";
  past.to_day = "2001-12-31";
  CHECK(ask(s, past).empty());
  past.to_day = days[0].key;
  CHECK(ask(s, past).size() == 3);
}

TEST_CASE("a day has its own budget, and goes with its age") {
  const auto kind = GENERATE(from_range(store_kinds()));
  if (kind == "postgres")
    return; // Its clock cannot be moved.
  const auto w = make_world(kind);
  auto& s = w->store();
  const auto today = [&] {
    sum_spend op;
    op.by = sum_spend::group::day;
    return ask(s, op);
  };
  REQUIRE(ask(s, call("c1", 100, 5, 100, 0)).granted);
  REQUIRE_FALSE(ask(s, call("c2", 1, 0, 100, 0)).granted);
  for (int spans = 0; !today().empty(); ++spans) {
    REQUIRE(spans < 10'000);
    w->after_span([] { return true; });
  }
  REQUIRE(ask(s, call("c2", 70, 0, 100, 0)).granted);
  // What was reserved on the day before counts there, also when it ends today.
  ask(s, end_of("c1", 1, 1));
  CHECK(totals(s) == four{70, 0, 70, 0});
  sum_spend all;
  all.by = sum_spend::group::day;
  all.from_day = "2001-01-01";
  CHECK(ask(s, all).size() == 2);
  // c1 and the totals of its two scopes, in batches.
  const auto remove = [&] { return ask(s, store::remove_finished{0ms, 0, 2}).removed; };
  CHECK(remove() == 2);
  CHECK(remove() == 1);
  CHECK(remove() == 0);
  CHECK(ask(s, all).size() == 1);
  ask(s, end_of("c1", 9, 9));
  ask(s, end_of("c2", 60, 1));
  CHECK(totals(s) == four{60, 1, 60, 1});
}

TEST_CASE("spending with wrong arguments is refused") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  CHECK(refusal(s, call("", 1, 1)) == errc::invalid_argument);
  CHECK(refusal(s, call("c", -1, 1)) == errc::invalid_argument);
  CHECK(refusal(s, call("c", queue::most_of_a_call + 1, 1)) == errc::invalid_argument);
  CHECK(refusal(s, call("c", 1, 1, -1)) == errc::invalid_argument);
  auto twice = call("c", 1, 1);
  twice.limits.push_back(twice.limits.front());
  CHECK(refusal(s, twice) == errc::invalid_argument);
  auto many = call("c", 1, 1);
  for (std::size_t i = 0; i <= queue::most_scopes; ++i)
    many.limits.push_back({"s" + std::to_string(i), 0, 0});
  CHECK(refusal(s, many) == errc::invalid_argument);
  CHECK(refusal(s, end_of("", 1, 1)) == errc::invalid_argument);
  CHECK(refusal(s, end_of("c", 1, -1)) == errc::invalid_argument);
  sum_spend wrong;
  wrong.from_day = "yesterday";
  CHECK(refusal(s, wrong) == errc::invalid_argument);
  CHECK(totals(s) == four{0, 0, 0, 0});
}

TEST_CASE("the largest calls of all are counted") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  constexpr auto most = queue::most_of_a_call;
  std::vector<store::operation> batch;
  for (int i = 0; i < 5; ++i)
    batch.emplace_back(call("c" + std::to_string(i), most, most));
  REQUIRE(s.apply(batch));
  CHECK(totals(s) == four{5 * most, 5 * most, 5 * most, 5 * most});
  constexpr auto greatest = std::numeric_limits<std::int64_t>::max();
  CHECK(ask(s, call("last", most, most, greatest, greatest)).granted);
}

TEST_CASE("sums of totals that do not fit are the greatest number") {
  constexpr auto greatest = std::numeric_limits<std::int64_t>::max();
  std::vector<queue::spend_total> totals{{greatest - 1, 0}, {0, greatest}};
  auto op = call("c", 5, 5);
  CHECK(queue::decide_spend(op, false, totals).granted);
  CHECK(totals == std::vector<queue::spend_total>{{greatest, 5}, {5, greatest}});
  op.limits[1].cost = greatest - 1;
  CHECK_FALSE(queue::decide_spend(op, false, totals).granted);
  queue::spend_total t{3, 3};
  queue::settle_total(t, {5, 5}, {1, 0});
  CHECK(t == queue::spend_total{1, 0});
}

namespace {

store::release_spend release_of(const std::string& id, std::int64_t tokens = 0,
                                std::int64_t cost = 0) {
  return {id, tokens, cost, "a person", "it failed", false};
}

using release = store::release_spend::outcome_t;

} // namespace

TEST_CASE("case W3: a released reservation counts no more, and what is told later does") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  ask(s, call("call-1/1/1", 60, 10));
  ask(s, call("call-2/1/1", 20, 10));
  store::list_spend open;
  open.open_only = true;
  open.call_id = "call-"; // totals are read with a call of their own
  auto listed = ask(s, open);
  REQUIRE(listed.size() == 2);
  CHECK(std::ranges::all_of(listed, &store::spend_call::is_open));
  sum_spend sums;
  CHECK(ask(s, sums).at(0).open_calls == 2);
  CHECK(ask(s, release_of("nobody")).outcome == release::not_found);
  CHECK(ask(s, release_of("call-1/1/1", 61)).outcome == release::more);
  const auto r = ask(s, release_of("call-1/1/1", 5, 1));
  CHECK(r.outcome == release::released);
  CHECK(ask(s, sums).at(0).open_calls == 1);
  CHECK(totals(s) == four{25, 11, 25, 11});
  REQUIRE(r.call);
  REQUIRE(r.call->release);
  CHECK(r.call->release->tokens == 55);
  CHECK(r.call->release->cost == 9);
  // Said again, it changes nothing, whoever says it.
  auto again = release_of("call-1/1/1", 5, 1);
  again.by = "another";
  const auto same = ask(s, again);
  CHECK(same.outcome == release::released);
  CHECK(same.call == r.call);
  CHECK(totals(s) == four{25, 11, 25, 11});
  listed = ask(s, open);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].call_id == "call-2/1/1");
  ask(s, end_of("call-1/1/1", 30, 4));
  CHECK(totals(s) == four{50, 14, 50, 14});
  store::list_spend one;
  one.call_id = "call-1";
  listed = ask(s, one);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].settled);
  CHECK(listed[0].release == r.call->release);
  // What was settled can be given back, too, and all of it with its reservation in one batch.
  CHECK(ask(s, release_of("call-1/1/1")).call->release->tokens == 85);
  CHECK(totals(s) == four{20, 10, 20, 10});
  REQUIRE(s.apply({call("call-3/1/1", 7, 7), release_of("call-3/1/1")}));
  CHECK(totals(s) == four{20, 10, 20, 10});
}

TEST_CASE("case W3: the call of a running dispatch or cycle is released by force alone") {
  const auto w = make_world(GENERATE(from_range(store_kinds())));
  auto& s = w->store();
  enqueue(s, {spec(1, "a")});
  const auto held = claim(s, "n1", 1).at(0);
  auto of_run = call(held.row.dispatch_id + "/" + std::to_string(held.row.fence) + "/1", 60, 10);
  of_run.dispatch_id = held.row.dispatch_id;
  auto of_earlier = of_run;
  of_earlier.call_id = held.row.dispatch_id + "/0/1";
  cycle_record cycle;
  cycle.cycle_id = "cycle-1";
  cycle.kernel_id = "k";
  cycle.node_id = "n1";
  ask(s, store::begin_cycle{cycle});
  auto of_cycle = call("cycle-1/kernel:planner/7/1", 5, 1);
  of_cycle.dispatch_id = "cycle-1/kernel:planner";
  REQUIRE(s.apply({of_run, of_earlier, of_cycle}));
  CHECK(ask(s, release_of(of_earlier.call_id)).outcome == release::released);
  CHECK(ask(s, release_of(of_run.call_id)).outcome == release::running);
  CHECK(ask(s, release_of(of_cycle.call_id)).outcome == release::running);
  CHECK(totals(s) == four{65, 11, 65, 11});
  auto forced = release_of(of_run.call_id);
  forced.force = true;
  CHECK(ask(s, forced).outcome == release::released);
  CHECK(totals(s) == four{5, 1, 5, 1});
  ask(s, end_of(of_run.call_id, 9, 3));
  CHECK(totals(s) == four{14, 4, 14, 4});
  cycle.status = cycle_status::success;
  ask(s, store::finish_cycle{cycle});
  CHECK(ask(s, release_of(of_cycle.call_id)).outcome == release::released);
  CHECK(totals(s) == four{9, 3, 9, 3});
  CHECK(refusal(s, store::release_spend{of_run.call_id, 0, 0, "", "why", false}) ==
        errc::invalid_argument);
  CHECK(refusal(s, store::release_spend{of_run.call_id, 0, 0, "me", "", false}) ==
        errc::invalid_argument);
  CHECK(refusal(s, release_of(of_run.call_id, -1)) == errc::invalid_argument);
}

namespace {

/// The rules in their plainest form.
struct plain_budget {
  struct known {
    usage_counts counts;
    bool settled = false;
    std::vector<std::string> scopes;
  };
  std::map<std::string, known> calls;

  std::int64_t sum(const std::string& scope, bool tokens) const {
    std::int64_t out = 0;
    for (const auto& [id, c] : calls)
      if (std::ranges::find(c.scopes, scope) != c.scopes.end())
        out += tokens ? c.counts.tokens() : c.counts.cost;
    return out;
  }

  reserve_spend::reply run(const reserve_spend& op) {
    reserve_spend::reply out;
    if (!calls.contains(op.call_id))
      for (const auto& l : op.limits)
        if ((l.tokens > 0 && sum(l.scope, true) + op.most.tokens() > l.tokens) ||
            (l.cost > 0 && sum(l.scope, false) + op.most.cost > l.cost)) {
          out.refused_scope = l.scope;
          break;
        }
    out.granted = out.refused_scope.empty();
    if (out.granted)
      calls.try_emplace(op.call_id, known{op.most, false, queue::scopes_of(op)});
    for (const auto& l : op.limits)
      out.totals.push_back({l.scope, sum(l.scope, true), sum(l.scope, false)});
    return out;
  }

  void run(const settle_spend& op) {
    const auto it = calls.find(op.call_id);
    if (it != calls.end() && !it->second.settled) {
      it->second.counts = op.used;
      it->second.settled = true;
    }
  }
};

std::string show(const reserve_spend::reply& r) {
  std::string out = (r.granted ? "yes" : "no ") + r.refused_scope;
  for (const auto& t : r.totals)
    out += " " + t.scope + "=" + std::to_string(t.tokens) + "," + std::to_string(t.cost);
  return out;
}

std::int64_t amount() {
  return *rc::gen::inRange<std::int64_t>(0, 20);
}

/// `run` keeps what runs on the same store do apart.
store::operation random_operation(const std::string& run) {
  const auto number = *rc::gen::inRange<std::size_t>(0, 12);
  const auto id = run + "/c" + std::to_string(number);
  if (*rc::gen::inRange(0, 3) == 0) {
    settle_spend op;
    op.call_id = id;
    op.used = {amount(), 0, amount(), 0, amount()};
    return op;
  }
  auto op = call(id, amount(), amount());
  op.kernel_id = run;
  op.most.output = amount();
  op.limits.clear();
  // One call_id is always asked with the same scopes, as its caller would.
  const std::vector<std::string> names{"x", "y", "z"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (number % names.size() != i)
      op.limits.push_back({run + names[i], *rc::gen::inRange<std::int64_t>(0, 120),
                           *rc::gen::inRange<std::int64_t>(0, 80)});
  return op;
}

void run_alike(dispatch_store& s, const std::string& run) {
  plain_budget plain;
  const auto batches = *rc::gen::inRange(1, 15);
  for (int i = 0; i < batches; ++i) {
    std::vector<store::operation> batch;
    const auto n = *rc::gen::inRange(1, 6);
    for (int j = 0; j < n; ++j)
      batch.push_back(random_operation(run));
    const auto replies = s.apply(batch);
    RC_ASSERT(replies.has_value());
    for (std::size_t j = 0; j < batch.size(); ++j) {
      if (const auto* op = std::get_if<settle_spend>(&batch[j])) {
        plain.run(*op);
        continue;
      }
      const auto expected = plain.run(std::get<reserve_spend>(batch[j]));
      RC_ASSERT(show(std::get<reserve_spend::reply>(replies->at(j))) == show(expected));
    }
  }
  std::int64_t cost = 0;
  std::int64_t tokens = 0;
  for (const auto& [id, c] : plain.calls) {
    cost += c.counts.cost;
    tokens += c.counts.tokens();
  }
  sum_spend question;
  question.kernel_id = run;
  const auto sums = ask(s, question);
  RC_ASSERT(sums.empty() == plain.calls.empty());
  if (!sums.empty()) {
    RC_ASSERT(sums[0].calls == plain.calls.size());
    RC_ASSERT(sums[0].used.cost == cost);
    RC_ASSERT(sums[0].used.tokens() == tokens);
  }
}

} // namespace

TEST_CASE("random spending is answered as plain rules say") {
  for (const auto& kind : store_kinds()) {
    const auto w = make_world(kind);
    int run = 0;
    REQUIRE(rc::check(kind + " keeps budgets",
                      [&] { run_alike(w->store(), "run" + std::to_string(++run)); }));
  }
}

TEST_CASE("connections that spend at the same time never go beyond a limit") {
  const auto kind = GENERATE(from_range(store_kinds()));
  const auto w = make_world(kind);
  if (!w->shared())
    return;
  w->store();
  constexpr int threads = 3;
  constexpr int calls = 40;
  constexpr std::int64_t limit = 100;
  std::vector<std::unique_ptr<dispatch_store>> stores;
  for (int i = 0; i < threads; ++i) {
    stores.push_back(w->connect());
    REQUIRE(stores.back()->open());
  }
  std::vector<std::int64_t> taken(threads);
  std::vector<std::string> troubles(threads);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      for (int n = 0; n < calls; ++n) {
        // Scopes in different orders, several calls in a batch, some given back.
        std::vector<store::operation> batch;
        for (int k = 0; k < 2; ++k) {
          auto op = call(std::to_string(i) + "/" + std::to_string(n) + "/" + std::to_string(k), 1,
                         3, 0, limit);
          op.limits.push_back({"z", 0, 0});
          if ((i + static_cast<std::size_t>(n + k)) % 2 == 0)
            std::ranges::reverse(op.limits);
          batch.emplace_back(op);
        }
        const auto replies = stores[i]->apply(batch);
        if (!replies) {
          troubles[i] = to_string(replies.error());
          return;
        }
        std::vector<store::operation> ends;
        for (std::size_t k = 0; k < batch.size(); ++k) {
          if (!std::get<reserve_spend::reply>(replies->at(k)).granted)
            continue;
          const bool cheap = k == 1;
          taken[i] += cheap ? 1 : 3;
          if (cheap)
            ends.emplace_back(end_of(std::get<reserve_spend>(batch[k]).call_id, 1, 1));
        }
        if (const auto ended = stores[i]->apply(ends); !ended)
          troubles[i] = to_string(ended.error());
      }
    });
  for (auto& t : all)
    t.join();
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    CHECK(troubles[i].empty());
    sum += taken[i];
  }
  REQUIRE(promised(sum <= limit, "the last cent is taken once"));
  CHECK(sum > limit - 3);
  const auto stands = totals(w->store());
  CHECK(stands[1] == sum);
  CHECK(stands[3] == sum);
}

} // namespace boyd::spend_test
