#include "boyd/model/governor.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace boyd::governor_machine_test {

using namespace boyd;
using model::breaker_state;
using model::governor_core;
using model::trouble;
using kind = model::trouble_kind;

// Any order of asks, drops, ends, changed limits and time, against what a caller may rely on.
namespace {

using ticket = governor_core::ticket_id;

constexpr std::array agents{"a", "b", "c"};

struct world {
  explicit world(const config::provider& p) : limits(p), core(p) {}

  config::provider limits;
  governor_core core;
  steady_time now{1h};
  ticket last = 0;
  std::map<ticket, std::string> waits;
  std::map<ticket, std::int64_t> holds; ///< with what was estimated
  std::set<ticket> told;
  // What the buckets may have given at most.
  std::vector<steady_time> grants;
};

config::provider any_limits() {
  config::provider p;
  p.provider_id = "p";
  p.max_concurrent = *rc::gen::inRange(1, 5);
  p.requests_per_minute = *rc::gen::element(0, 0, 6, 60);
  p.tokens_per_minute = *rc::gen::element<std::int64_t>(0, 0, 1000);
  return p;
}

std::optional<trouble> any_end() {
  if (*rc::gen::inRange(0, 3) == 0)
    return std::nullopt;
  trouble t;
  t.kind = static_cast<kind>(*rc::gen::inRange(0, static_cast<int>(kind::cancelled) + 1));
  t.what = "x";
  if (*rc::gen::inRange(0, 4) == 0)
    t.retry_after = milliseconds{*rc::gen::inRange(0, 200'000)};
  return t;
}

ticket any_of(const std::map<ticket, std::int64_t>& from) {
  return std::next(from.begin(), *rc::gen::inRange(0, static_cast<int>(from.size())))->first;
}

void decide(world& w) {
  const auto before = w.core.in_use();
  const auto places = std::max(w.limits.max_concurrent, before);
  const auto state = w.core.breaker(w.now);
  int given = 0;
  for (const auto& d : w.core.decide(w.now)) {
    RC_ASSERT(w.told.insert(d.ticket).second); // once
    RC_ASSERT(w.waits.count(d.ticket) == 1U);  // who waits, and was not dropped
    w.waits.erase(d.ticket);
    RC_ASSERT(d.granted != d.why.has_value());
    if (!d.granted) {
      RC_ASSERT(d.why->retry_after.has_value());
      RC_ASSERT(d.why->retry_after->count() > 0);
      continue;
    }
    ++given;
    w.holds.emplace(d.ticket, 0);
    w.grants.push_back(w.now);
  }
  RC_ASSERT(w.core.in_use() == before + given);
  RC_ASSERT(given == 0 || w.core.in_use() <= places);
  RC_ASSERT(state != breaker_state::open || given == 0);
  RC_ASSERT(state != breaker_state::half_open || given <= 1);
  RC_ASSERT(state != breaker_state::open || w.core.waiting() == 0U);
}

/// No more requests in a minute than its two buckets give.
void check_rate(const world& w) {
  if (w.limits.requests_per_minute == 0)
    return;
  for (std::size_t i = 0; i < w.grants.size(); ++i) {
    const auto end = std::find_if(w.grants.begin() + static_cast<std::ptrdiff_t>(i), w.grants.end(),
                                  [&](steady_time t) { return t >= w.grants[i] + 60s; });
    const auto count = end - w.grants.begin() - static_cast<std::ptrdiff_t>(i);
    RC_ASSERT(count <= 2 * w.limits.requests_per_minute);
  }
}

void ask(world& w) {
  const std::string agent = agents[*rc::gen::inRange<std::size_t>(0, agents.size())];
  w.core.ask(++w.last, agent, *rc::gen::inRange<std::int64_t>(-5, 2000), w.now);
  w.waits.emplace(w.last, agent);
}

void drop(world& w) {
  const auto any = *rc::gen::inRange<ticket>(0, w.last + 2);
  w.core.drop(any, w.now);
  w.waits.erase(any);
  w.holds.erase(any);
}

void end(world& w) {
  if (w.holds.empty())
    return;
  const auto any = any_of(w.holds);
  w.core.done(any, *rc::gen::inRange<std::int64_t>(-5, 3000), any_end(), w.now);
  w.holds.erase(any);
}

void step(world& w) {
  switch (*rc::gen::weightedElement<int>({{6, 0}, {1, 1}, {4, 2}, {3, 3}, {1, 4}})) {
  case 0:
    ask(w);
    break;
  case 1:
    drop(w);
    break;
  case 2:
    end(w);
    break;
  case 3:
    w.now += milliseconds{*rc::gen::inRange(0, 40'000)};
    break;
  default:
    if (const auto look = w.core.next_look())
      w.now = std::max(w.now, *look);
  }
}

} // namespace

TEST_CASE("governor machine: nobody is told twice, no place leaks, no limit is passed",
          "[governor][machine]") {
  CHECK(rc::check("any order of events", [] {
    world w(any_limits());
    const int steps = *rc::gen::inRange(1, 120);
    for (int i = 0; i < steps; ++i) {
      step(w);
      decide(w);
      RC_ASSERT(w.core.waiting() == w.waits.size());
      RC_ASSERT(static_cast<std::size_t>(w.core.in_use()) == w.holds.size());
    }
    check_rate(w);
  }));
}

TEST_CASE("governor machine: all who wait are answered in the end", "[governor][machine]") {
  CHECK(rc::check("drained", [] {
    world w(any_limits());
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      step(w);
      decide(w);
    }
    for (int i = 0; i < 3000 && !(w.waits.empty() && w.holds.empty()); ++i) {
      decide(w);
      while (!w.holds.empty()) {
        const auto any = w.holds.begin()->first;
        w.core.done(any, 0, std::nullopt, w.now);
        w.holds.erase(any);
      }
      if (w.waits.empty())
        continue;
      if (const auto look = w.core.next_look())
        w.now = std::max(w.now, *look);
    }
    RC_ASSERT(w.waits.empty());
    RC_ASSERT(w.core.in_use() == 0);
    RC_ASSERT(w.core.waiting() == 0U);
  }));
}

TEST_CASE("governor machine: agents are served in turn", "[governor][machine]") {
  CHECK(rc::check("at most one turn of each other agent", [] {
    config::provider p;
    p.max_concurrent = *rc::gen::inRange(1, 4);
    governor_core core(p);
    const steady_time now{1h};
    std::map<ticket, std::string> agent_of;
    ticket last = 0;
    const auto ask = [&](const std::string& agent) {
      agent_of.emplace(++last, agent);
      core.ask(last, agent, 0, now);
    };
    const int many = *rc::gen::inRange(5, 200);
    for (int i = 0; i < many; ++i)
      ask("many");
    std::vector<ticket> held;
    const auto decide = [&] {
      std::vector<std::string> served;
      for (const auto& d : core.decide(now)) {
        held.push_back(d.ticket);
        served.push_back(agent_of.at(d.ticket));
      }
      return served;
    };
    decide();
    const int others = *rc::gen::inRange(1, 5);
    for (int i = 0; i < others; ++i)
      ask("other" + std::to_string(i));
    // Each other agent is served once before `many` is served twice.
    std::vector<std::string> order;
    while (order.size() < static_cast<std::size_t>(others) + 2 && core.waiting() > 0) {
      core.done(held.back(), 0, std::nullopt, now);
      held.pop_back();
      for (auto& agent : decide())
        order.push_back(std::move(agent));
    }
    const auto first = std::min<std::size_t>(order.size(), static_cast<std::size_t>(others) + 1);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(first);
    RC_ASSERT(std::count(order.begin(), end, "many") <= 1);
  }));
}

} // namespace boyd::governor_machine_test
