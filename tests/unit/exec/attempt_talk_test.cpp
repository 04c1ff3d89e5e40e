#include "boyd/exec/attempt.hpp"
#include "chat_talk.hpp"

namespace boyd::attempt_talk_test {

using namespace boyd;
using namespace boyd::exec;
using namespace boyd::exec::chat_test;
using Catch::Matchers::Contains;

namespace {

steady_time at(milliseconds since) {
  return steady_time{1h + since};
}

template <class Effect>
const Effect* find_in(const attempt_effects& effects) {
  for (const auto& e : effects)
    if (const auto* found = std::get_if<Effect>(&e))
      return found;
  return nullptr;
}

std::optional<steady_time> armed(const attempt_effects& effects, timer_kind kind) {
  std::optional<steady_time> when;
  for (const auto& e : effects)
    if (const auto* t = std::get_if<effect::arm_timer>(&e); t != nullptr && t->kind == kind)
      when = t->at;
  return when;
}

/// A conversation of ten seconds, which waits for its place.
struct queued {
  attempt_options options;
  std::optional<attempt_core> core;

  attempt_effects begin() {
    options.work = talk_of();
    options.timeout = 10s;
    core.emplace(options);
    return core->begin(at(0s));
  }
  attempt_effects get_place(milliseconds since) {
    return core->on_talk([](chat_loop& l) { return l.on_place(1, {}, 1); }, at(since));
  }
};

} // namespace

TEST_CASE("attempt: what a conversation waits for its place is not its own time") {
  queued q;
  CHECK(armed(q.begin(), timer_kind::deadline) == at(10s));
  CHECK(q.core->on_timer(timer_kind::deadline, at(10s)).empty());
  CHECK(q.core->on_timer(timer_kind::deadline, at(1h)).empty());
  CHECK(armed(q.get_place(2h), timer_kind::deadline) == at(2h + 10s));
  CHECK_FALSE(q.core->finished());
  // A timer of before is early.
  CHECK(armed(q.core->on_timer(timer_kind::deadline, at(2h + 9s)), timer_kind::deadline) ==
        at(2h + 10s));
  const auto end = q.core->on_timer(timer_kind::deadline, at(2h + 10s));
  const auto* done = find_in<effect::finish>(end);
  REQUIRE(done != nullptr);
  CHECK(done->outcome->execution == execution_verdict::timed_out);
  CHECK(
      done->outcome->error ==
      "timed out after 10s: waiting for the budgets (in addition, it waited 2h for its provider)");
}

TEST_CASE("attempt: a short wait for a place needs no timer of its own") {
  queued q;
  q.begin();
  CHECK_FALSE(armed(q.get_place(4s), timer_kind::deadline));
  // The timer of the beginning comes, and is set anew.
  CHECK(armed(q.core->on_timer(timer_kind::deadline, at(10s)), timer_kind::deadline) == at(14s));
  CHECK_FALSE(q.core->finished());
}

TEST_CASE("attempt: the budget of time counts the wait for a place") {
  queued q;
  q.options.wall_budget = 60s;
  q.begin();
  CHECK(armed(q.core->on_timer(timer_kind::deadline, at(10s)), timer_kind::deadline) == at(60s));
  SECTION("it is used up in the queue") {
    const auto end = q.core->on_timer(timer_kind::deadline, at(60s));
    const auto* done = find_in<effect::finish>(end);
    REQUIRE(done != nullptr);
    CHECK(done->outcome->failure == failure_class::policy);
    CHECK_THAT(done->outcome->error, Contains("budget.run.wall"));
  }
  SECTION("or ends before the time-out") {
    CHECK(armed(q.get_place(55s), timer_kind::deadline) == at(60s));
    const auto end = q.core->on_timer(timer_kind::deadline, at(60s));
    REQUIRE(find_in<effect::finish>(end) != nullptr);
    CHECK(find_in<effect::finish>(end)->outcome->failure == failure_class::policy);
  }
  SECTION("or the time-out before it") {
    CHECK(armed(q.get_place(20s), timer_kind::deadline) == at(30s));
    const auto end = q.core->on_timer(timer_kind::deadline, at(30s));
    REQUIRE(find_in<effect::finish>(end) != nullptr);
    CHECK(find_in<effect::finish>(end)->outcome->execution == execution_verdict::timed_out);
  }
}

TEST_CASE("attempt: of its budget of time a run is warned") {
  queued q;
  SECTION("there is one") {
    q.options.wall_budget = 5s;
    CHECK(armed(q.begin(), timer_kind::budget) == at(4s));
    const auto told = q.core->on_timer(timer_kind::budget, at(4s));
    const auto* talk = find_in<effect::talk>(told);
    REQUIRE(talk != nullptr);
    const auto* warning = std::get_if<effect::warn>(&talk->what);
    REQUIRE(warning != nullptr);
    CHECK(warning->text == "the budget of the run (wall) is used up to 80 %");
    q.core->cancel(cancel_reason::shutdown, at(4s));
    CHECK(q.core->on_timer(timer_kind::budget, at(4s)).empty());
  }
  SECTION("there is none") {
    CHECK_FALSE(armed(q.begin(), timer_kind::budget));
  }
}

} // namespace boyd::attempt_talk_test
