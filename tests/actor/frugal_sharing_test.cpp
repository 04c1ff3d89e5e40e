#include "actors/support/frugal_scheduler.hpp"
#include "support/pch.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace boyd::frugal_sharing_test {

using namespace boyd;

namespace {

constexpr std::chrono::seconds patience{30};

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

namespace {

/// Never answers: questions stay in its mailbox.
caf::actor silent(caf::actor_system& system) {
  return system.spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler(caf::skip);
    return {[](const std::string&) {}};
  });
}

} // namespace

TEST_CASE("scheduler: limits of requests and delayed messages come, and ended actors get none") {
  threads t(2);
  const auto nobody = silent(*t.system);
  // Actors that end with a limit that has not come, as many as the clock's queue has no room for.
  constexpr int many = 1'000;
  std::atomic<int> left{many};
  std::promise<void> all_ended;
  for (int i = 0; i < many; ++i)
    t.system->spawn([&, limited = i % 2 == 0](caf::event_based_actor* self) {
      if (limited)
        self->request(nobody, std::chrono::seconds(3600), 1)
            .then([](int) {}, [](const caf::error&) {});
      self->attach_functor([&] {
        if (--left == 0)
          all_ended.set_value();
      });
      self->quit();
    });
  CHECK(in_time(all_ended.get_future()));
  std::promise<void> refused;
  std::promise<void> delayed;
  t.system->spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->request(nobody, std::chrono::milliseconds(5), 1)
        .then([](int) {},
              [&](const caf::error& e) {
                if (e == caf::sec::request_timeout)
                  refused.set_value();
              });
    self->delayed_send(self, std::chrono::milliseconds(5), 1);
    return {[&](int) { delayed.set_value(); }};
  });
  CHECK(in_time(refused.get_future()));
  CHECK(in_time(delayed.get_future()));
  caf::anon_send_exit(nobody, caf::exit_reason::kill);
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

} // namespace boyd::frugal_sharing_test
