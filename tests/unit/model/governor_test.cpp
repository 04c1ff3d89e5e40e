#include "boyd/model/governor.hpp"
#include "support/pch.hpp"

#include <cmath>

namespace boyd::governor_test {

using namespace boyd;
using model::breaker_state;
using model::governor_core;
using model::trouble;
using kind = model::trouble_kind;

namespace {

config::provider with_places(int places) {
  config::provider p;
  p.provider_id = "p";
  p.max_concurrent = places;
  return p;
}

steady_time at(milliseconds since) {
  return steady_time{1h + since};
}

using tickets = std::vector<governor_core::ticket_id>;

tickets granted(governor_core& g, steady_time now) {
  tickets out;
  for (const auto& d : g.decide(now)) {
    CHECK(d.granted != d.why.has_value());
    if (d.granted)
      out.push_back(d.ticket);
  }
  return out;
}

trouble of(kind k, std::optional<milliseconds> wait = std::nullopt) {
  trouble t;
  t.kind = k;
  t.what = "it is " + std::string(model::name_of(k));
  t.retry_after = wait;
  return t;
}

/// One call that ends so.
void call(governor_core& g, governor_core::ticket_id ticket, const std::optional<trouble>& end,
          steady_time now) {
  g.ask(ticket, "a", 0, now);
  REQUIRE(granted(g, now) == tickets{ticket});
  g.done(ticket, 0, end, now);
}

void open(governor_core& g, steady_time now) {
  for (governor_core::ticket_id i = 1; i <= model::breaker_failures; ++i)
    call(g, i, of(kind::unavailable), now);
  REQUIRE(g.breaker(now) == breaker_state::open);
}

} // namespace

TEST_CASE("governor: what a provider counted corrects later estimates of that model") {
  governor_core g(with_places(2));
  governor_core::ticket_id ticket = 0;
  const auto end = [&](const std::string& model, const model::input_count& count) {
    g.ask(++ticket, "a", 10, at(0ms), model);
    const auto decided = g.decide(at(0ms));
    REQUIRE(decided.size() == 1);
    g.done(ticket, 10, {}, at(0ms), count);
    return decided[0].input_ratio;
  };
  CHECK(end("m", {100, 150}) == 1);
  CHECK(end("m", {100, 150}) == 1.5);
  CHECK(end("other", {100, 100}) == 1);
  // A moving mean, within bounds; nonsense teaches nothing.
  CHECK(end("m", {100, 250}) == 1.5);
  CHECK(std::abs(g.input_ratio("m") - 1.8) < 1e-9);
  for (int i = 0; i < 50; ++i)
    end("m", {1, 1'000'000});
  CHECK(g.input_ratio("m") <= model::most_ratio);
  CHECK(g.input_ratio("m") > model::most_ratio - 0.01);
  end("m", {0, 100});
  end("m", {100, 0});
  CHECK(g.input_ratio("m") > model::most_ratio - 0.01);
}

TEST_CASE("governor: places, and agents in turn", "[governor]") {
  governor_core g(with_places(2));
  for (governor_core::ticket_id i = 1; i <= 4; ++i)
    g.ask(i, "a", 0, at(0s));
  g.ask(5, "b", 0, at(0s));
  CHECK(g.waiting() == 5);
  CHECK(granted(g, at(0s)) == tickets{1, 5});
  CHECK(g.in_use() == 2);
  CHECK_FALSE(g.next_look());
  CHECK(granted(g, at(1h)).empty());
  g.done(1, 0, std::nullopt, at(1s));
  CHECK(granted(g, at(1s)) == tickets{2});
  g.done(5, 0, std::nullopt, at(1s));
  g.done(2, 0, std::nullopt, at(1s));
  CHECK(granted(g, at(1s)) == tickets{3, 4});
  CHECK(g.waiting() == 0);
}

TEST_CASE("governor: one agent's thousand calls delay another's by one turn", "[governor]") {
  governor_core g(with_places(1));
  for (governor_core::ticket_id i = 1; i <= 1000; ++i)
    g.ask(i, "many", 0, at(0s));
  CHECK(granted(g, at(0s)) == tickets{1});
  g.ask(2000, "one", 0, at(0s));
  g.done(1, 0, std::nullopt, at(1s));
  CHECK(granted(g, at(1s)) == tickets{2});
  g.done(2, 0, std::nullopt, at(2s));
  CHECK(granted(g, at(2s)) == tickets{2000});
}

TEST_CASE("governor: dropped calls leave nothing behind", "[governor]") {
  governor_core g(with_places(1));
  g.ask(1, "a", 0, at(0s));
  g.ask(2, "b", 0, at(0s));
  g.ask(3, "a", 0, at(0s));
  g.drop(1, at(0s)); // waiting; the turn stays its agent's
  CHECK(granted(g, at(0s)) == tickets{3});
  g.drop(3, at(0s)); // granted
  g.drop(3, at(0s)); // gone
  g.done(3, 9, of(kind::unavailable), at(0s));
  CHECK(g.in_use() == 0);
  CHECK(g.last_trouble().empty());
  CHECK(granted(g, at(0s)) == tickets{2});
  g.drop(99, at(0s));
  CHECK(g.in_use() == 1);
  // A number that is in use is not taken twice.
  g.ask(2, "a", 0, at(0s));
  g.ask(0, "a", 0, at(0s));
  CHECK(g.waiting() == 0);
}

TEST_CASE("governor: too many that wait are refused", "[governor]") {
  governor_core g(with_places(1));
  const auto count = model::governor_queue + 3;
  for (governor_core::ticket_id i = 1; i <= count; ++i)
    g.ask(i, "a", 0, at(0s));
  CHECK(g.waiting() == model::governor_queue);
  g.drop(count, at(0s)); // refused, but not told yet
  REQUIRE(g.next_look());
  CHECK(*g.next_look() <= at(0s));
  std::size_t refused = 0;
  for (const auto& d : g.decide(at(0s)))
    if (!d.granted) {
      ++refused;
      CHECK(d.why->kind == kind::overloaded);
      CHECK(d.why->retry_after.has_value());
    }
  CHECK(refused == 2);
}

TEST_CASE("governor: requests per minute are spread", "[governor]") {
  auto p = with_places(100);
  p.requests_per_minute = 6;
  governor_core g(p);
  for (governor_core::ticket_id i = 1; i <= 10; ++i)
    g.ask(i, "a", 0, at(0s));
  CHECK(granted(g, at(0s)).size() == 6);
  REQUIRE(g.next_look());
  CHECK(*g.next_look() > at(9'999ms));
  CHECK(*g.next_look() <= at(10'002ms));
  CHECK(granted(g, at(9'999ms)).empty());
  CHECK(granted(g, at(10'001ms)).size() == 1);
  CHECK(granted(g, at(1h)).size() == 3);
}

TEST_CASE("governor: tokens per minute, as estimated and as used", "[governor]") {
  auto p = with_places(100);
  p.tokens_per_minute = 6000;
  governor_core g(p);
  g.ask(1, "a", 4000, at(0s));
  g.ask(2, "a", 4000, at(0s));
  g.ask(3, "b", 1, at(0s));
  // In turn: b's small one passes, a's second waits for its 4,000.
  CHECK(granted(g, at(0s)) == tickets{1, 3});
  CHECK(*g.next_look() > at(20s));
  CHECK(*g.next_look() < at(21s));
  SECTION("a cheap call gives the rest back") {
    g.done(1, 100, std::nullopt, at(1s));
    CHECK(granted(g, at(1s)) == tickets{2});
  }
  SECTION("a dear one is paid for later") {
    g.done(1, 10'000, std::nullopt, at(0s));
    CHECK(granted(g, at(79s)).empty());
    CHECK(granted(g, *g.next_look()) == tickets{2});
  }
  SECTION("one that is larger than a minute's passes when all is there") {
    g.drop(2, at(0s));
    g.ask(4, "a", 1'000'000, at(0s));
    CHECK(granted(g, at(30s)).empty());
    CHECK(granted(g, *g.next_look()) == tickets{4});
  }
}

TEST_CASE("governor: limits may change", "[governor]") {
  governor_core g(with_places(1));
  for (governor_core::ticket_id i = 1; i <= 9; ++i)
    g.ask(i, "a", 100, at(0s));
  CHECK(granted(g, at(0s)).size() == 1);
  auto p = with_places(100);
  p.requests_per_minute = 3;
  g.set_limits(p);
  CHECK(granted(g, at(0s)).size() == 3);
  p.max_concurrent = 1;
  p.requests_per_minute = 0;
  g.set_limits(p);
  CHECK(granted(g, at(0s)).empty());
  CHECK(g.in_use() == 4);
  for (governor_core::ticket_id i = 1; i <= 4; ++i)
    g.done(i, 0, std::nullopt, at(0s));
  CHECK(granted(g, at(0s)).size() == 1);
}

TEST_CASE("case 54 llm-429-500-storm: the breaker opens, one call tries, it closes",
          "[governor][fault]") {
  governor_core g(with_places(10));
  open(g, at(0s));
  CHECK(g.last_trouble() == "it is unavailable");
  g.ask(100, "a", 0, at(1s));
  g.ask(101, "b", 0, at(1s));
  const auto refused = g.decide(at(1s));
  REQUIRE(refused.size() == 2);
  for (const auto& d : refused) {
    CHECK_FALSE(d.granted);
    CHECK(d.why->kind == kind::unavailable);
    CHECK(d.why->retry_after == 29s);
    CHECK(d.why->what.find("it is unavailable") != std::string::npos);
  }
  CHECK(g.waiting() == 0);
  // Half open: one tries, the others wait for how it ends.
  CHECK(g.breaker(at(30s)) == breaker_state::half_open);
  for (governor_core::ticket_id i = 200; i < 204; ++i)
    g.ask(i, "a", 0, at(30s));
  CHECK(granted(g, at(30s)) == tickets{200});
  CHECK_FALSE(g.next_look());
  CHECK(granted(g, at(40s)).empty());
  SECTION("it ends well") {
    g.done(200, 0, std::nullopt, at(41s));
    CHECK(g.breaker(at(41s)) == breaker_state::closed);
    CHECK(g.last_trouble().empty());
    CHECK(granted(g, at(41s)) == tickets{201, 202, 203});
    // And counts anew.
    for (const auto i : {201, 202, 203})
      g.done(static_cast<governor_core::ticket_id>(i), 0, of(kind::overloaded), at(41s));
    CHECK(g.breaker(at(41s)) == breaker_state::closed);
  }
  SECTION("it ends badly: thirty more seconds, from now") {
    g.done(200, 0, of(kind::bad_answer), at(41s));
    CHECK(g.breaker(at(70s)) == breaker_state::open);
    CHECK(g.decide(at(41s)).size() == 3);
    CHECK(g.breaker(at(71s)) == breaker_state::half_open);
  }
  SECTION("nobody knows how: another one tries") {
    SECTION("dropped") {
      g.drop(200, at(41s));
    }
    SECTION("cancelled") {
      g.done(200, 0, of(kind::cancelled), at(41s));
    }
    CHECK(g.breaker(at(41s)) == breaker_state::half_open);
    CHECK(granted(g, at(41s)) == tickets{201});
  }
  SECTION("the provider is there, but slow down") {
    g.done(200, 0, of(kind::rate_limited), at(41s));
    CHECK(g.breaker(at(41s)) == breaker_state::closed);
    CHECK(granted(g, at(41s)).empty());
    CHECK(*g.next_look() == at(42s));
    CHECK(granted(g, at(42s)).size() == 3);
  }
}

TEST_CASE("governor: one agent's garbage closes the provider to that agent alone", "[governor]") {
  governor_core g(with_places(4));
  governor_core::ticket_id next = 0;
  const auto ask = [&](const std::string& agent, steady_time now) {
    g.ask(++next, agent, 10, now);
    const auto all = g.decide(now);
    REQUIRE(all.size() == 1);
    CHECK(all.front().ticket == next);
    return all.front();
  };
  for (int i = 0; i < model::breaker_failures; ++i) {
    CHECK(ask("k/bad", at(1s)).granted);
    g.done(next, 10, of(kind::bad_answer), at(1s));
  }
  CHECK(g.breaker(at(1s)) == breaker_state::closed);
  const auto refused = ask("k/bad", at(2s));
  REQUIRE_FALSE(refused.granted);
  CHECK(refused.why->kind == kind::bad_answer);
  CHECK(refused.why->retry_after == model::breaker_wait - 1s);
  CHECK(refused.why->what.find("k/bad") != std::string::npos);
  CHECK(ask("k/good", at(2s)).granted);
  g.done(next, 10, std::nullopt, at(2s));
  // Afterwards one bad answer closes it again, and a good one clears all.
  CHECK(ask("k/bad", at(31s)).granted);
  g.done(next, 10, of(kind::bad_answer), at(31s));
  CHECK_FALSE(ask("k/bad", at(32s)).granted);
  CHECK(ask("k/bad", at(62s)).granted);
  g.done(next, 10, std::nullopt, at(62s));
  CHECK(ask("k/bad", at(62s)).granted);
  g.done(next, 10, of(kind::bad_answer), at(62s));
  CHECK(ask("k/bad", at(62s)).granted);
}

TEST_CASE("governor: what counts for the breaker", "[governor]") {
  governor_core g(with_places(1));
  governor_core::ticket_id next = 0;
  const auto ends = [&](const std::optional<trouble>& t) { call(g, ++next, t, at(next * 10s)); };
  const auto state = [&] { return g.breaker(at(next * 10s)); };
  SECTION("trouble of the provider, also with rate limits and cancellations between") {
    for (const auto k : {kind::unavailable, kind::rate_limited, kind::overloaded, kind::cancelled,
                         kind::bad_answer, kind::unavailable, kind::overloaded}) {
      ends(of(k));
      CHECK(state() == breaker_state::closed);
    }
    ends(of(kind::unavailable));
    CHECK(state() == breaker_state::open);
  }
  SECTION("any other answer begins anew") {
    for (const auto k : {kind::quota, kind::unauthorized, kind::not_found, kind::bad_request,
                         kind::too_long, kind::refused}) {
      for (int i = 0; i < 4; ++i)
        ends(of(kind::unavailable));
      ends(of(k));
      CHECK(state() == breaker_state::closed);
      CHECK(g.last_trouble() == of(k).what);
    }
    ends(std::nullopt);
    CHECK(g.last_trouble().empty());
  }
  SECTION("rate limits alone never") {
    for (int i = 0; i < 50; ++i)
      ends(of(kind::rate_limited, 1s));
    CHECK(state() == breaker_state::closed);
  }
}

TEST_CASE("governor: calls from before the breaker do not move it", "[governor]") {
  governor_core g(with_places(10));
  g.ask(50, "a", 0, at(0s));
  g.ask(51, "a", 0, at(0s));
  REQUIRE(granted(g, at(0s)).size() == 2);
  open(g, at(1s));
  g.done(50, 0, std::nullopt, at(2s));
  CHECK(g.breaker(at(2s)) == breaker_state::open);
  g.ask(60, "a", 0, at(31s));
  REQUIRE(granted(g, at(31s)) == tickets{60});
  g.done(51, 0, of(kind::unavailable), at(32s));
  CHECK(g.breaker(at(32s)) == breaker_state::half_open);
  g.ask(61, "a", 0, at(33s));
  CHECK(granted(g, at(33s)).empty());
  g.done(60, 0, std::nullopt, at(34s));
  CHECK(granted(g, at(34s)) == tickets{61});
}

TEST_CASE("governor: Retry-After pauses the model for everyone", "[governor]") {
  governor_core g(with_places(10));
  call(g, 1, of(kind::rate_limited, 20s), at(0s));
  g.ask(2, "other", 0, at(1s));
  CHECK(granted(g, at(1s)).empty());
  CHECK(*g.next_look() == at(20s));
  CHECK(granted(g, at(20s)) == tickets{2});
  // A shorter one does not end a longer one.
  g.ask(3, "a", 0, at(20s));
  REQUIRE(granted(g, at(20s)) == tickets{3});
  g.done(2, 0, of(kind::overloaded, 100s), at(20s));
  g.done(3, 0, of(kind::rate_limited, 1s), at(20s));
  g.ask(4, "a", 0, at(20s));
  CHECK(granted(g, at(119s)).empty());
  CHECK(granted(g, at(120s)) == tickets{4});
}

TEST_CASE("governor: a pause of one model is none of another", "[governor]") {
  governor_core g(with_places(10));
  governor_core::ticket_id next = 0;
  const auto ask = [&](const std::string& agent, const std::string& model, steady_time now) {
    g.ask(++next, agent, 0, now, model);
    return granted(g, now) == tickets{next};
  };
  REQUIRE(ask("a", "bad", at(0s)));
  SECTION("one that is waited for") {
    g.done(next, 0, of(kind::rate_limited, 20s), at(0s));
    CHECK_FALSE(ask("b", "bad", at(1s)));
    const auto waits = next;
    CHECK(ask("c", "good", at(1s)));
    CHECK(ask("b2", "good", at(2s)));
    CHECK(*g.next_look() == at(20s));
    // The other one's has an end of its own.
    g.done(next, 0, of(kind::overloaded, 5s), at(2s));
    CHECK_FALSE(ask("c", "good", at(3s)));
    CHECK(*g.next_look() == at(7s));
    CHECK(granted(g, at(7s)) == tickets{next});
    CHECK(*g.next_look() == at(20s));
    CHECK(granted(g, at(20s)) == tickets{waits});
  }
  SECTION("one that refuses") {
    g.done(next, 0, of(kind::rate_limited, 10min), at(0s));
    CHECK(ask("c", "good", at(1s)));
    g.ask(++next, "b", 0, at(1s), "bad");
    const auto refused = g.decide(at(1s));
    REQUIRE(refused.size() == 1);
    REQUIRE(refused[0].why);
    CHECK(refused[0].why->retry_after == 10min - 1s);
    CHECK(refused[0].why->what.find("provider p, bad: the provider asks for a pause of") == 0);
  }
}

TEST_CASE("governor: no count of a provider closes it for longer than a minute or two",
          "[governor]") {
  auto p = with_places(100);
  p.tokens_per_minute = 6000;
  governor_core g(p);
  g.ask(1, "a", 10, at(0s));
  REQUIRE(granted(g, at(0s)) == tickets{1});
  SECTION("what a call is said to have used") {
    g.done(1, 1'000'000'000'000, std::nullopt, at(0s));
    g.ask(2, "b", 6000, at(0s));
    CHECK(granted(g, at(119s)).empty());
    CHECK(granted(g, at(121s)) == tickets{2});
  }
  SECTION("a limit that a reload makes much smaller") {
    g.done(1, 5990, std::nullopt, at(0s));
    p.tokens_per_minute = 6;
    g.set_limits(p);
    g.ask(2, "b", 6, at(0s));
    CHECK(granted(g, at(119s)).empty());
    CHECK(granted(g, at(121s)) == tickets{2});
  }
}

TEST_CASE("governor: a pause that is too long to wait for refuses", "[governor]") {
  governor_core g(with_places(10));
  call(g, 1, of(kind::rate_limited, std::chrono::hours{20}), at(0s));
  g.ask(2, "a", 0, at(0s));
  const auto refused = g.decide(at(0s));
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].why->kind == kind::rate_limited);
  CHECK(refused[0].why->retry_after == 1h); // no provider closes itself for longer
  g.ask(3, "a", 0, at(59min));
  CHECK(g.decide(at(59min)).empty());
  CHECK(granted(g, at(1h)) == tickets{3});
}

TEST_CASE("governor: a refusal is as short as any trouble", "[governor]") {
  governor_core g(with_places(10));
  auto wordy = of(kind::unavailable);
  wordy.what = std::string(500, 'x');
  for (governor_core::ticket_id i = 1; i <= model::breaker_failures; ++i)
    call(g, i, wordy, at(0s));
  g.ask(9, "a", 0, at(0s));
  const auto refused = g.decide(at(0s));
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].why->what.size() == 500);
}

TEST_CASE("governor: a clock that stands or steps back gives nothing away", "[governor]") {
  auto p = with_places(10);
  p.requests_per_minute = 1;
  governor_core g(p);
  g.ask(1, "a", 0, at(10s));
  g.ask(2, "a", 0, at(10s));
  CHECK(granted(g, at(10s)).size() == 1);
  CHECK(granted(g, at(0s)).empty());
  CHECK(granted(g, at(10s)).empty());
  CHECK(granted(g, at(69s)).empty());
  CHECK(granted(g, at(70'001ms)).size() == 1);
}

TEST_CASE("governor: calls of one agent that hang leave the next place to others", "[governor]") {
  governor_core g(with_places(3));
  for (governor_core::ticket_id i = 1; i <= 6; ++i)
    g.ask(i, "hangs", 0, at(0s));
  REQUIRE(granted(g, at(0s)) == tickets{1, 2, 3});
  for (const governor_core::ticket_id i : {10U, 11U, 12U})
    g.ask(i, "good", 0, at(0s));
  // What waits of the one that holds two has its turn when the other holds as many.
  g.done(1, 0, std::nullopt, at(1s));
  CHECK(granted(g, at(1s)) == tickets{10});
  for (const governor_core::ticket_id i : {10U, 11U}) {
    g.done(i, 0, std::nullopt, at(2s));
    CHECK(granted(g, at(2s)) == tickets{i + 1});
  }
  g.done(12, 0, std::nullopt, at(3s));
  CHECK(granted(g, at(3s)) == tickets{4});
}

TEST_CASE("governor: a model that fails closes nothing to another", "[governor]") {
  governor_core g(with_places(10));
  governor_core::ticket_id next = 0;
  const auto ask = [&](const std::string& agent, const std::string& model, steady_time now) {
    g.ask(++next, agent, 0, now, model);
    const auto all = g.decide(now);
    REQUIRE(all.size() == 1);
    return all.front();
  };
  // Answers of the other model between them do not count for it.
  for (int i = 0; i < model::breaker_failures; ++i) {
    REQUIRE(ask("a" + std::to_string(i), "gone", at(0s)).granted);
    g.done(next, 0, of(kind::overloaded), at(0s));
    REQUIRE(ask("good", "there", at(0s)).granted);
    g.done(next, 0, std::nullopt, at(0s));
  }
  CHECK(g.breaker(at(0s)) == breaker_state::open);
  CHECK(g.last_trouble() == "gone: it is overloaded");
  REQUIRE(g.open_models(at(0s)).size() == 1);
  CHECK(g.open_models(at(0s)).front().name == "gone");
  const auto refused = ask("b", "gone", at(1s));
  REQUIRE_FALSE(refused.granted);
  CHECK(refused.why->what.find("provider p, gone: 5 failures") == 0);
  CHECK(ask("good", "there", at(1s)).granted);
  // While one tries, calls of the other model pass those that wait for how it ends.
  REQUIRE(ask("b", "gone", at(31s)).granted);
  const auto trying = next;
  g.ask(++next, "c", 0, at(31s), "gone");
  g.ask(++next, "good", 0, at(31s), "there");
  CHECK(granted(g, at(31s)) == tickets{next});
  g.done(trying, 0, std::nullopt, at(32s));
  CHECK(g.breaker(at(32s)) == breaker_state::closed);
  CHECK(granted(g, at(32s)) == tickets{next - 1});
}

} // namespace boyd::governor_test
