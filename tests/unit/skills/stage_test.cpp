#include "boyd/skills/stage.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cmath>

namespace boyd::stage_test {

using namespace boyd;
using namespace boyd::skills;
using context::item_statistics;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

item_statistics good(std::int64_t references) {
  item_statistics s;
  s.injected = s.use_count = s.referenced = s.success_count = s.verified_useful = references;
  s.confidence = 0.7 + 0.05 * static_cast<double>(references);
  s.created = t0;
  s.last_used = t0;
  return s;
}

item_statistics any_statistics() {
  item_statistics s;
  const auto few = [] { return *rc::gen::inRange<std::int64_t>(0, 12); };
  s.injected = few();
  s.use_count = few();
  s.referenced = few();
  s.success_count = s.verified_useful = few();
  s.failure_count = s.verified_not_useful = few();
  s.confidence = static_cast<double>(*rc::gen::inRange(0, 101)) / 100;
  s.created = t0;
  if (*rc::gen::arbitrary<bool>())
    s.last_used = t0 + std::chrono::hours{*rc::gen::inRange(0, 24 * 50)};
  return s;
}

utc_time any_time() {
  return t0 + std::chrono::hours{*rc::gen::inRange(0, 24 * 100)};
}

} // namespace

TEST_CASE("stage: the rules of the table, in their order", "[skills]") {
  CHECK(stage_of({}, t0) == stage_verdict{stage::context, "no importance or usage stats", 0});
  item_statistics shown;
  shown.injected = 40;
  CHECK(stage_of(shown, t0).reason == "no importance or usage stats");
  CHECK(stage_of(good(2), t0).where == stage::context);
  CHECK(stage_of(good(2), t0).reason == "default");
  CHECK(stage_of(good(3), t0).where == stage::bank);
  CHECK(stage_of(good(3), t0).reason == "stable repeated usage");
  CHECK(stage_of(good(5), t0).where == stage::skill_candidate);
  CHECK(stage_of(good(5), t0).reason == "frequently referenced with high verified usefulness");
  // Used within 7 days, to the millisecond.
  const auto week = std::chrono::hours{24 * 7};
  CHECK(stage_of(good(5), t0 + week).where == stage::skill_candidate);
  CHECK(stage_of(good(5), t0 + week + milliseconds{1}).where == stage::bank);
  auto bad = good(1);
  bad.verified_not_useful = bad.failure_count = 2;
  bad.confidence = 0.24;
  const auto month = std::chrono::hours{24 * 30};
  CHECK(stage_of(bad, t0 + month).where == stage::context);
  CHECK(stage_of(bad, t0 + month + milliseconds{1}).where == stage::archived);
  bad.confidence = 0.25;
  CHECK(stage_of(bad, t0 + 2 * month).where == stage::context);
  auto mixed = good(3);
  mixed.verified_not_useful = 2; // 3 of 5
  CHECK(stage_of(mixed, t0).where == stage::bank);
  mixed.verified_not_useful = 3;
  CHECK(stage_of(mixed, t0).where == stage::context);
}

TEST_CASE("stage: the score is what the table says", "[skills]") {
  auto s = good(5);
  s.confidence = 0.8;
  CHECK(stage_of(s, t0).score == Approx(0.5 * 0.8 + 0.3 * std::log(6.0) + 0.2 * 0.5));
  s.use_count = 50;
  CHECK(stage_of(s, t0).score == Approx(0.5 * 0.8 + 0.3 * std::log(6.0) + 0.2));
}

TEST_CASE("stage: every item has one, and what is banked does not depend on the time", "[skills]") {
  CHECK(rc::check([] {
    const auto s = any_statistics();
    const auto now = any_time();
    const auto v = stage_of(s, now);
    RC_ASSERT(v.where >= stage::archived);
    RC_ASSERT(v.where <= stage::skill_candidate);
    RC_ASSERT(!v.reason.empty());
    RC_ASSERT(std::isfinite(v.score));
    RC_ASSERT(stage_of(s, now) == v);
    if (s.last_used && now >= *s.last_used) {
      RC_ASSERT((v.where >= stage::bank) == is_banked(s));
    }
  }));
}

TEST_CASE("stage: more credit never lowers it, more blame never raises it", "[skills]") {
  CHECK(rc::check([] {
    const auto s = any_statistics();
    const auto now = any_time();
    const auto before = stage_of(s, now).where;
    auto better = s;
    switch (*rc::gen::inRange(0, 3)) {
    case 0:
      ++better.referenced;
      ++better.use_count;
      break;
    case 1:
      ++better.success_count;
      ++better.verified_useful;
      break;
    default:
      better.confidence = std::min(1.0, better.confidence + 0.05);
    }
    RC_ASSERT(stage_of(better, now).where >= before);
    RC_ASSERT(stage_of(better, now).score >= stage_of(s, now).score);
    auto worse = s;
    ++worse.failure_count;
    ++worse.verified_not_useful;
    worse.confidence = std::max(0.0, worse.confidence - 0.1);
    RC_ASSERT(stage_of(worse, now).where <= std::max(before, stage::context));
    // Time alone lifts nothing.
    RC_ASSERT(stage_of(s, now + std::chrono::hours{24 * 40}).where <= before);
  }));
}

} // namespace boyd::stage_test
