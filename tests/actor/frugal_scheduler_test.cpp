#include "actors/support/frugal_scheduler.hpp"
#include "boyd/core/time.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <future>
#include <vector>

namespace boyd::frugal_scheduler_test {

using namespace boyd;

namespace {

constexpr auto patience = 30s;

/// A real system on as many threads.
struct threads {
  explicit threads(std::int64_t count) {
    config.set("scheduler.max-threads", count);
    config.set("logger.verbosity", caf::atom("quiet"));
    config.load<frugal_scheduler>();
    system = std::make_unique<caf::actor_system>(config);
  }

  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
};

/// Runs `work` for each message, which says for how many.
caf::actor worker(caf::actor_system& system, std::function<void(int)> work) {
  return system.spawn([work = std::move(work)](caf::event_based_actor*) -> caf::behavior {
    return {[work](int n) { work(n); }};
  });
}

/// Takes questions and answers none.
caf::actor mute_one(caf::actor_system& system) {
  return system.spawn([](caf::event_based_actor* self) -> caf::behavior {
    auto kept = std::make_shared<std::vector<caf::response_promise>>();
    return {[self, kept](int) {
      kept->push_back(self->make_response_promise());
      return kept->back();
    }};
  });
}

bool in_time(const std::future<void>& done) {
  return done.wait_for(patience) == std::future_status::ready;
}

} // namespace

TEST_CASE("scheduler: what actors hand to each other arrives, on one thread as on four") {
  constexpr int rings = 8;
  constexpr int rounds = 5'000;
  for (const std::int64_t count : {1, 2, 4}) {
    threads t(count);
    std::promise<void> all;
    std::atomic<int> left{rings};
    for (int ring = 0; ring < rings; ++ring) {
      const auto echo = t.system->spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](int n) {
          self->send(caf::actor_cast<caf::actor>(self->current_sender()), n - 1);
        }};
      });
      t.system->spawn([&, echo](caf::event_based_actor* self) -> caf::behavior {
        self->send(echo, rounds);
        return {[&, echo, self](int n) {
          if (n > 0)
            return self->send(echo, n);
          if (--left == 0)
            all.set_value();
          self->quit();
        }};
      });
    }
    CHECK(in_time(all.get_future()));
  }
}

TEST_CASE(
    "scheduler: a thread that sleeps is woken for work from outside, beside one that is busy") {
  threads t(2);
  std::promise<void> begun;
  std::promise<void> answered;
  auto answer = answered.get_future().share();
  const auto busy = worker(*t.system, [&](int) {
    begun.set_value();
    answer.wait_for(patience);
  });
  caf::anon_send(busy, 1);
  REQUIRE(in_time(begun.get_future()));
  caf::anon_send(worker(*t.system, [&](int) { answered.set_value(); }), 1);
  CHECK(answer.wait_for(patience) == std::future_status::ready);
}

TEST_CASE(
    "scheduler: what a busy thread has sent itself does not wait for its end when it is much") {
  threads t(2);
  constexpr int many = 4;
  // So many may wait for a thread that went to sleep while they were sent.
  constexpr int behind = 2;
  std::promise<void> done;
  std::atomic<int> left{many};
  std::vector<caf::actor> others;
  for (int i = 0; i < many; ++i)
    others.push_back(worker(*t.system, [&](int) {
      if (--left == behind)
        done.set_value();
    }));
  std::promise<bool> seen;
  const auto busy = worker(*t.system, [&](int) {
    for (const auto& other : others)
      caf::anon_send(other, 1);
    seen.set_value(in_time(done.get_future()));
  });
  caf::anon_send(busy, 1);
  CHECK(seen.get_future().get());
}

TEST_CASE("scheduler: a system ends with work left in it") {
  for (int round = 0; round < 20; ++round) {
    threads t(2);
    const auto endless = t.system->spawn([](caf::event_based_actor* self) -> caf::behavior {
      return {[self](int n) { self->send(self, n + 1); }};
    });
    caf::anon_send(endless, 0);
    caf::anon_send_exit(endless, caf::exit_reason::kill);
  }
  SUCCEED("each has ended");
}

TEST_CASE("scheduler: what is due sooner does not wait for what was asked for before it") {
  threads t(2);
  std::promise<int> first;
  std::atomic<bool> told{false};
  const auto listener = worker(*t.system, [&](int n) {
    if (!told.exchange(true))
      first.set_value(n);
  });
  std::promise<void> both;
  t.system->spawn([&](caf::event_based_actor* self) {
    self->delayed_send(listener, 60min, 1);
    self->delayed_send(listener, 5ms, 2);
    both.set_value();
  });
  REQUIRE(in_time(both.get_future()));
  auto came = first.get_future();
  REQUIRE(came.wait_for(patience) == std::future_status::ready);
  CHECK(came.get() == 2);
  // The message that is far away keeps it.
  caf::anon_send_exit(listener, caf::exit_reason::kill);
}

TEST_CASE("scheduler: delayed messages come in the order in which they are due") {
  threads t(2);
  constexpr int count = 50;
  std::promise<void> all;
  std::vector<int> seen;
  const auto listener = worker(*t.system, [&](int n) {
    seen.push_back(n);
    if (seen.size() == count)
      all.set_value();
  });
  t.system->spawn([&](caf::event_based_actor* self) {
    // The clock of the scheduler itself: what is due at one instant has an order, too.
    auto& clock = self->system().clock();
    const auto now = clock.now();
    for (int n = count; n-- > 0;)
      clock.schedule_message(now + std::chrono::milliseconds{n},
                             caf::actor_cast<caf::strong_actor_ptr>(listener),
                             caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, n));
  });
  REQUIRE(in_time(all.get_future()));
  CHECK(std::ranges::is_sorted(seen));
}

TEST_CASE("scheduler: a request without an answer ends at its limit, an answered one does not") {
  threads t(2);
  const auto mute = mute_one(*t.system);
  const auto quick = t.system->spawn(
      [](caf::event_based_actor*) -> caf::behavior { return {[](int n) { return n; }}; });
  std::promise<caf::error> late;
  std::promise<int> answered;
  std::atomic<int> spoiled{0};
  t.system->spawn([&](caf::event_based_actor* self) {
    self->request(quick, 60min, 7)
        .then([&](int n) { answered.set_value(n); }, [&](caf::error&) { ++spoiled; });
    self->request(mute, 10ms, 1)
        .then([&](int) { ++spoiled; }, [&](caf::error& e) { late.set_value(std::move(e)); });
  });
  auto in_the_end = late.get_future();
  REQUIRE(in_the_end.wait_for(patience) == std::future_status::ready);
  CHECK(in_the_end.get() == caf::sec::request_timeout);
  CHECK(answered.get_future().get() == 7);
  CHECK(spoiled == 0);
  caf::anon_send_exit(mute, caf::exit_reason::kill);
}

TEST_CASE("scheduler: actors that end take their limits with them, from many threads at once") {
  threads t(4);
  constexpr int count = 2'000;
  const auto mute = mute_one(*t.system);
  std::promise<void> all;
  std::atomic<int> left{count};
  for (int i = 0; i < count; ++i)
    t.system->spawn([&, mute](caf::event_based_actor* self) -> caf::behavior {
      self->request(mute, 60min, 1).then([](int) {});
      self->attach_functor([&] {
        if (--left == 0)
          all.set_value();
      });
      self->delayed_send(self, 1ms, 1);
      return {[self](int) { self->quit(); }};
    });
  CHECK(in_time(all.get_future()));
  auto& clock = dynamic_cast<frugal_scheduler&>(t.system->scheduler()).clock();
  // An actor that ends cancels them behind its functors.
  CHECK(test::wait_until([&] { return clock.waiting() == 0; }));
  caf::anon_send_exit(mute, caf::exit_reason::kill);
}

} // namespace boyd::frugal_scheduler_test
