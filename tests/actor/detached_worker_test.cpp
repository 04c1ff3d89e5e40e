#include "echo_keeper.hpp"
#include "support/actor_system.hpp"
#include "support/pch.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/wait.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <atomic>

namespace boyd::detached_worker_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// What the workers of all keepers do, seen from outside.
struct worker_events {
  event_latch begun; ///< batches
  event_latch go_on; ///< a batch ends not before
  event_latch closed;
  std::atomic<int> living{0};
  std::atomic<int> most{0}; ///< at once
};

class slow_performer final : public performer<echo_request, echo_reply> {
 public:
  explicit slow_performer(worker_events& all) : all_(all) {
    const int now = ++all_.living;
    all_.most = std::max(all_.most.load(), now);
  }
  ~slow_performer() override {
    --all_.living;
    all_.closed.signal();
  }
  void perform(std::vector<echo_job>& batch) override {
    all_.begun.signal();
    static_cast<void>(all_.go_on.wait());
    for (auto& j : batch)
      j.reply = echo_reply{j.request.text};
  }
  part_health health() override { return {}; }

 private:
  worker_events& all_;
};

/// Keepers of one name on threads of their own.
struct fixture {
  worker_events workers;
  deterministic_system clockwork; ///< for its clock alone
  caf::actor_system_config configuration;
  caf::actor_system system{configuration};
  keeper_parts<echo_request, echo_reply> parts;

  fixture() {
    parts.name = "echo";
    parts.clock = clockwork.clock();
    parts.random = std::make_shared<sim::seeded_entropy>(1);
    parts.roll = std::make_shared<worker_roll>();
    parts.make_performer = [this] { return std::make_unique<slow_performer>(workers); };
  }

  echo_actor spawn() {
    return system.spawn(plain_keeper<echo_actor, echo_request, echo_reply>, parts);
  }

  void ask(const echo_actor& keeper, event_latch& answered) {
    system.spawn([&answered, keeper](caf::event_based_actor* self) {
      self->request(keeper, patience, echo_request{{}, "a"})
          .then(
              [&answered](result<echo_reply>& r) {
                if (r)
                  answered.signal();
              },
              [](caf::error&) {});
    });
  }

  part_health health(const echo_actor& keeper) {
    part_health told;
    caf::scoped_actor asking{system};
    asking->request(keeper, patience, health_query{})
        .receive([&](result<part_health>& h) { told = h.value_or(part_health{}); },
                 [](caf::error&) {});
    return told;
  }
};

} // namespace

TEST_CASE("a detached worker ends with its keeper", "[keeper][actor]") {
  event_latch answered;
  fixture f;
  f.workers.go_on.signal();
  const auto keeper = f.spawn();
  f.ask(keeper, answered);
  CHECK(answered.wait());
  caf::anon_send_exit(keeper, caf::exit_reason::user_shutdown);
  CHECK(f.workers.closed.wait());
}

TEST_CASE("a new keeper's worker waits until the one of the keeper before it has ended",
          "[keeper][actor]") {
  event_latch ended;
  event_latch answered;
  fixture f;
  const auto first = f.spawn();
  first->attach_functor([&] { ended.signal(); });
  caf::anon_send(first, echo_request{{}, "a"});
  REQUIRE(f.workers.begun.wait());
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  REQUIRE(ended.wait());

  const auto second = f.spawn();
  const auto waiting = f.health(second);
  CHECK_FALSE(waiting.ok);
  CHECK(waiting.reason.find("its previous worker") != std::string::npos);
  f.ask(second, answered);
  CHECK(f.workers.begun.count() == 1);
  f.workers.go_on.signal();
  CHECK(answered.wait());
  CHECK(f.workers.most == 1);
  caf::anon_send_exit(second, caf::exit_reason::user_shutdown);
}

} // namespace boyd::detached_worker_test
