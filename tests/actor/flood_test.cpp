#include "actors/store/actor.hpp"
#include "actors/store/replies.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/entropy.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>

namespace boyd::flood_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  store_actor store = actors.own(spawn_store(actors.system(), context));

  store_reply now(store::operation op) {
    auto answer = actors.ask_now<store_reply>(store, store_request{{}, {std::move(op)}});
    REQUIRE(answer.ok());
    return answer.value();
  }

  /// Rows that run here.
  std::vector<claimed_dispatch> running(std::size_t count) {
    store::enqueue_cycle op;
    op.kernel_id = "default";
    op.cycle_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    for (std::size_t i = 0; i < count; ++i) {
      auto& spec = op.specs.emplace_back();
      spec.dispatch_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
      spec.kernel_id = op.kernel_id;
      spec.cycle_id = op.cycle_id;
      spec.agent_id = "agent-" + std::to_string(i);
    }
    now(op);
    store::claim all{.node_id = "n", .kernel_id = "default", .agent_id = {}, .limit = count};
    return std::get<store::claim::reply>(store_replies::of(now(all)).front());
  }
};

} // namespace

TEST_CASE("case 6 mailbox-flood: beyond the queue questions are refused, results never",
          "[store][actor]") {
  fixture f;
  constexpr std::size_t results = 100;
  constexpr std::size_t too_many = 500;
  const auto rows = f.running(results);
  REQUIRE(rows.size() == results);
  std::vector<test::asked<store_reply>> asked;
  for (std::size_t i = 0; i < limits::store_queue + too_many; ++i)
    asked.push_back(f.actors.ask<store_reply>(f.store, store_request{{}, {store::list_nodes{}}}));
  std::vector<test::asked<store_reply>> settled;
  for (const auto& c : rows)
    settled.push_back(f.actors.ask<store_reply>(
        f.store,
        store_request{
            {},
            {store::settle{"n", {{c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, {}}}}}}));
  f.actors.run_all(1'000'000);
  std::size_t refused = 0;
  for (const auto& a : asked) {
    REQUIRE(a.answered());
    if (a.ok())
      continue;
    ++refused;
    CHECK(a.why().code == errc::overloaded);
    CHECK(a.why().next == "try again in a second");
  }
  CHECK(refused > 0);
  for (const auto& a : settled) {
    REQUIRE(a.ok());
    CHECK(std::get<store::settle::reply>(store_replies::of(a.value()).front()).front() ==
          settle_result::accepted);
  }
  const auto counts = std::get<store::count_by_status::reply>(
      store_replies::of(f.now(store::count_by_status{})).front());
  CHECK(counts == store::count_by_status::reply{{dispatch_status::done, results}});
}

namespace {

using ticks = std::chrono::steady_clock;

/// Of this process, MiB.
double resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kib = 0; word == "VmRSS:" && status >> kib)
      return kib / 1024;
  return 0;
}

/// How long the flood lasts; FAULTS.md says a minute.
milliseconds flood_time() {
  return std::chrono::seconds{test::knob("BOYD_FLOOD_SECONDS", 3)};
}

/// What came of the questions of one phase.
struct tally {
  static constexpr std::size_t buckets = 100'000; ///< of 0.1 ms

  std::size_t asked = 0;
  std::size_t accepted = 0;
  std::size_t refused = 0;
  std::size_t wrong = 0; ///< any other answer
  std::size_t settled = 0;
  std::size_t most_waiting = 0; ///< asked, and neither taken nor refused yet
  std::vector<std::uint32_t> times = std::vector<std::uint32_t>(buckets);
  ticks::duration took{};
  double peak = 0; ///< MiB
  test::event_latch over;

  void note(const result<store_reply>& r, ticks::duration time) {
    if (r) {
      const auto bucket = static_cast<std::size_t>(time / std::chrono::microseconds{100});
      ++times[std::min(bucket, buckets - 1)];
      ++accepted;
    } else {
      ++(r.error().code == errc::overloaded && r.error().next == "try again in a second" ? refused
                                                                                         : wrong);
    }
  }
  /// Milliseconds that 99 of 100 accepted questions took at most.
  double p99() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < buckets; ++i)
      if ((sum += times[i]) * 100 >= accepted * 99)
        return static_cast<double>(i + 1) / 10;
    return 0;
  }
  double per_second() const {
    return static_cast<double>(accepted) / std::chrono::duration<double>(took).count();
  }
};

struct flood_tick : message {};

struct flood_state {
  store_actor store;
  std::shared_ptr<tally> seen;
  double per_second = 0; ///< 0: a question for each answer
  std::vector<claimed_dispatch> to_settle;
  ticks::time_point began, ticked;
  std::size_t waiting = 0;
  static inline const char* name = "flood";
};

using flood_pointer = caf::stateful_actor<flood_state>*;

bool goes_on(flood_pointer self) {
  return ticks::now() - self->state.began < flood_time();
}

void end_when_answered(flood_pointer self) {
  auto& s = self->state;
  if (s.waiting > 0 || goes_on(self))
    return;
  s.seen->took = ticks::now() - s.began;
  s.seen->over.signal();
  self->quit();
}

void ask_one(flood_pointer self) {
  auto& s = self->state;
  ++s.seen->asked;
  s.seen->most_waiting = std::max(s.seen->most_waiting, ++s.waiting);
  store_request what;
  what.operations.emplace_back(store::put_fact{"flood", "key", "value"});
  const auto answered = [self, asked = ticks::now()](const result<store_reply>& r) {
    auto& now = self->state;
    now.seen->note(r, ticks::now() - asked);
    --now.waiting;
    if (now.per_second == 0 && goes_on(self))
      ask_one(self);
    end_when_answered(self);
  };
  // Without a time limit: CAF keeps a timer for each until it is over, answered or not, which would
  // be measured instead of the store.
  self->request(s.store, caf::infinite, std::move(what))
      .then([answered](result<store_reply>& r) { answered(r); },
            [answered](caf::error&) { answered(fail(errc::actor_down, "no answer")); });
}

void settle_one(flood_pointer self) {
  auto& s = self->state;
  if (s.to_settle.empty())
    return;
  const auto row = std::move(s.to_settle.back().row);
  s.to_settle.pop_back();
  ++s.waiting;
  store_request what;
  what.operations.emplace_back(
      store::settle{"n", {{row.dispatch_id, row.fence, settle_to::done, 0ms, {}}}});
  const auto answered = [self](const result<store_reply>& r) {
    if (r && std::get<store::settle::reply>(store_replies::of(*r).front()).front() ==
                 settle_result::accepted)
      ++self->state.seen->settled;
    --self->state.waiting;
    end_when_answered(self);
  };
  self->request(s.store, 1min, std::move(what))
      .then([answered](result<store_reply>& r) { answered(r); },
            [answered](caf::error&) { answered(fail(errc::timed_out, "no answer")); });
}

caf::behavior flood(flood_pointer self, store_actor store, std::shared_ptr<tally> seen,
                    double per_second, std::vector<claimed_dispatch> to_settle) {
  auto& s = self->state;
  s.store = std::move(store);
  s.seen = std::move(seen);
  s.per_second = per_second;
  s.to_settle = std::move(to_settle);
  s.began = s.ticked = ticks::now();
  if (per_second == 0)
    for (std::size_t i = 0; i < limits::store_queue; ++i)
      ask_one(self);
  else
    self->send(self, flood_tick{});
  return {[self](flood_tick&) {
    auto& now = self->state;
    const auto at = ticks::now();
    // What a stall of the machine has held back does not come all at once.
    const auto since = std::min<ticks::duration>(at - std::exchange(now.ticked, at), 50ms);
    auto due =
        static_cast<std::size_t>(std::chrono::duration<double>(since).count() * now.per_second);
    for (; due > 0; --due)
      ask_one(self);
    settle_one(self);
    now.seen->peak = std::max(now.seen->peak, resident());
    if (goes_on(self))
      return self->delayed_send(self, 5ms, flood_tick{});
    while (!now.to_settle.empty())
      settle_one(self);
    end_when_answered(self);
  }};
}

/// A store on a real disk, with the threads of a node. The disk is made slow, so that what comes in
/// is ten times what can be done while the machine has time for both.
struct slow_store {
  test::temp_dir home;
  caf::actor_system_config configuration;
  caf::actor_system system{configuration};
  store_actor store = spawn_store(system, context());

  slow_store() {
    spdlog::set_level(spdlog::level::off);
    REQUIRE(faults::arm({{"store.apply", faults::action::delay, -1, 1.0, 100ms}}, 1));
  }
  ~slow_store() {
    faults::disarm();
    spdlog::set_level(spdlog::level::info);
    caf::anon_send_exit(store, caf::exit_reason::user_shutdown);
  }

  node_context_ptr context() const {
    auto c = std::make_shared<node_context>();
    c->ports.clock = adapters::make_system_clock();
    c->ports.random = adapters::make_system_entropy();
    c->ports.files = adapters::make_posix_file_system();
    c->ports.make_store = [clock = c->ports.clock, path = home.file("boyd.db")] {
      return adapters::make_sqlite_store({.path = path, .clock = clock});
    };
    c->home = home.path();
    return c;
  }

  store_reply now(store::operation op) {
    caf::scoped_actor self(system);
    store_reply reply;
    store_request what;
    what.operations.push_back(std::move(op));
    self->request(store, 1min, std::move(what))
        .receive([&](result<store_reply>& r) { reply = r.value(); }, [](caf::error&) {});
    REQUIRE(store_replies::of(reply).size() == 1);
    return reply;
  }

  std::vector<claimed_dispatch> running(std::size_t count) {
    store::enqueue_cycle op;
    op.kernel_id = "default";
    op.cycle_id = "cycle";
    for (std::size_t i = 0; i < count; ++i) {
      auto& spec = op.specs.emplace_back();
      spec.agent_id = "agent-" + std::to_string(i);
      spec.dispatch_id = "dispatch-" + std::to_string(i);
      spec.kernel_id = op.kernel_id;
      spec.cycle_id = op.cycle_id;
    }
    now(op);
    store::claim all{.node_id = "n", .kernel_id = "default", .agent_id = {}, .limit = count};
    return std::get<store::claim::reply>(store_replies::of(now(std::move(all))).front());
  }

  std::shared_ptr<tally> flood_with(double per_second, std::vector<claimed_dispatch> rows = {}) {
    auto seen = std::make_shared<tally>();
    system.spawn(flood, store, seen, per_second, std::move(rows));
    REQUIRE(seen->over.wait(1, flood_time() + test::patience));
    return seen;
  }
};

} // namespace

TEST_CASE(
    "case 6 mailbox-flood: ten times what the store can take costs neither memory nor the time "
    "of what it takes",
    "[store][actor][real]") {
  constexpr std::size_t results = 200;
  constexpr double growth_mib = 64;
  constexpr int times = 10;
  slow_store f;
  auto rows = f.running(results);
  REQUIRE(rows.size() == results);
  // As much as it takes, its queue full.
  const auto full = f.flood_with(0);
  CHECK(full->wrong == 0);
  CHECK(full->refused == 0);
  const auto before = resident();
  const auto flooded = f.flood_with(full->per_second() * times, std::move(rows));
  test::tell_figure(fmt::format(
      "case 6: {:.0f} questions/s asked, {:.0f} taken ({:.0f} without the flood), p99 {:.0f} ms "
      "({:.0f} ms), {} waiting and memory {:+.0f} MiB at most, {} of {} results settled",
      static_cast<double>(flooded->asked) / std::chrono::duration<double>(flooded->took).count(),
      flooded->per_second(), full->per_second(), flooded->p99(), full->p99(), flooded->most_waiting,
      flooded->peak - before, flooded->settled, results));
  CHECK(flooded->wrong == 0);
  CHECK(flooded->refused > 0);
  CHECK(test::promised(flooded->settled == results, "no result is refused in a flood"));
  CHECK(flooded->p99() <= full->p99() * test::at_most(2.0, 20.0));
  if (!test::sanitized())
    CHECK(flooded->peak - before <= growth_mib);
}

} // namespace boyd::flood_test
