#include "support/actor_system.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <caf/all.hpp>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <utility>

namespace boyd::contract_lifetime_test {

using namespace boyd;
using boyd::test::deterministic_system;

namespace {

caf::behavior counter(caf::event_based_actor*, std::shared_ptr<int> handled) {
  return {[handled](int) { ++*handled; }};
}

/// How many of 100 waiting messages an actor handles before an exit that is sent behind them.
template <caf::message_priority P>
int handled_before_exit() {
  deterministic_system node;
  auto handled = std::make_shared<int>(0);
  auto actor = node.own(node.system().spawn(counter, handled));
  for (int i = 0; i < 100; ++i)
    caf::anon_send(actor, i);
  caf::anon_send<P>(actor, caf::exit_msg{actor.address(), caf::exit_reason::kill});
  node.run_all();
  CHECK(node.ended(actor));
  return *handled;
}

/// Says when it is destroyed.
struct witness {
  explicit witness(std::function<void()> f) : gone(std::move(f)) {}
  ~witness() { gone(); }
  std::function<void()> gone;
};

} // namespace

TEST_CASE("contract 1: the registry does not replace a name", "[contract]") {
  deterministic_system node;
  auto handled = std::make_shared<int>(0);
  auto first = node.own(node.system().spawn(counter, handled));
  auto second = node.own(node.system().spawn(counter, handled));
  auto& registry = node.system().registry();
  registry.put(caf::atom("part"), first);
  registry.put(caf::atom("part"), second);
  CHECK(registry.get<caf::actor>(caf::atom("part")) == first);
  registry.erase(caf::atom("part"));
}

TEST_CASE("contract 2: a detached actor ends with its last handle", "[contract]") {
  test::event_latch gone;
  caf::actor_system_config configuration;
  caf::actor_system system(configuration);
  auto held = std::make_shared<witness>([&] { gone.signal(); });
  {
    auto actor = system.spawn<caf::detached>(
        [held](caf::event_based_actor*) -> caf::behavior { return {[held](int x) { return x; }}; });
    held.reset();
    caf::anon_send(actor, 1);
  }
  CHECK(gone.wait());
}

TEST_CASE("contract 3: ~actor_system waits for every actor", "[contract]") {
  // The thread that made a system must end it: it holds a reference to the system's logger, for
  // whose end the destructor waits.
  caf::actor_system_config configuration;
  auto system = std::make_unique<caf::actor_system>(configuration);
  std::atomic<bool> exited = false;
  auto actor = system->spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
  actor->attach_functor([&] { exited = true; });
  std::thread ending([actor = std::exchange(actor, nullptr)] {
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  });
  system.reset();
  CHECK(exited);
  ending.join();
}

TEST_CASE("contract 4, case 5 await-blocks-exit: an actor that awaits does not hear an exit",
          "[contract]") {
  deterministic_system node;
  auto silent = node.own(node.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
    return {[self](int) -> caf::result<int> {
      (void)self->make_response_promise();
      return caf::delegated<int>{};
    }};
  }));
  const auto asker = [&](bool waits) {
    return node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
      auto request = self->request(silent, std::chrono::seconds{5}, 1);
      const auto nop = [](int) {};
      const auto failed = [](caf::error&) {};
      if (waits)
        request.await(nop, failed);
      else
        request.then(nop, failed);
      return {[](const std::string&) {}};
    }));
  };
  auto awaiting = asker(true);
  auto polite = asker(false);
  node.run_all();
  node.kill(awaiting);
  node.kill(polite);
  int steps = 0;
  while (!node.ended(polite) && node.run_one())
    ++steps;
  node.run_all();
  CHECK_FALSE(node.ended(awaiting));
  CHECK(node.ended(polite));
  node.advance(std::chrono::seconds{6});
  node.kill(awaiting);
  node.run_all();
  CHECK(node.ended(awaiting));
  test::tell_figure("case 5: told to end in a request of 5 s, who asked with `then` ended after " +
                    std::to_string(steps) +
                    " steps and no time, who used `await` not before its limit");
}

TEST_CASE("contract 8: an exit waits behind the mail, kill as well, but for high priority",
          "[contract]") {
  CHECK(handled_before_exit<caf::message_priority::normal>() == 100);
  CHECK(handled_before_exit<caf::message_priority::high>() == 0);
}

TEST_CASE("contract 8: a message of high priority overtakes, a request of high priority does not",
          "[contract]") {
  deterministic_system node;
  int mail = 0;
  int before_message = -1;
  auto busy = node.own(node.system().spawn([&]() -> caf::behavior {
    return {[&](const std::string&) { ++mail; }, [&](int) { before_message = mail; }};
  }));
  node.run_all();
  for (const bool as_request : {false, true}) {
    mail = 0;
    for (int i = 0; i < 100; ++i)
      caf::anon_send(busy, std::string("mail"));
    node.system().spawn([=](caf::event_based_actor* self) {
      if (as_request)
        self->request<caf::message_priority::high>(busy, std::chrono::seconds{5}, 1)
            .then([] {}, [](caf::error&) {});
      else
        self->send<caf::message_priority::high>(busy, 1);
    });
    node.run_all();
    // It handles one of its mail before the other gets its turn.
    CHECK(before_message == (as_request ? 100 : 1));
  }
}

TEST_CASE("contract 9: a delayed message keeps its receiver alive and cannot be taken back",
          "[contract]") {
  bool gone = false;
  {
    deterministic_system node;
    auto held = std::make_shared<witness>([&] { gone = true; });
    node.system().spawn([held](caf::event_based_actor* self) -> caf::behavior {
      self->delayed_send(self, std::chrono::minutes{60}, 1);
      return {[held](int) {}};
    });
    held.reset();
    node.run_all();
    node.advance(std::chrono::minutes{59});
    CHECK_FALSE(gone);
    node.advance(std::chrono::minutes{2});
    CHECK(gone);
  }
}

TEST_CASE("contract 13: a periodic tick is always pending, time advances explicitly",
          "[contract]") {
  deterministic_system node;
  auto ticks = std::make_shared<int>(0);
  node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, std::chrono::seconds{1}, 1);
    return {[=](int) {
      ++*ticks;
      self->delayed_send(self, std::chrono::seconds{1}, 1);
    }};
  }));
  node.advance(std::chrono::seconds{10});
  CHECK(*ticks == 10);
  CHECK(node.scheduler().has_pending_timeout());
}

TEST_CASE("contract: the coordinator's jobs are in the order of sending, and may be chosen",
          "[contract]") {
  const auto order_of = [](deterministic_system& node) {
    auto order = std::make_shared<std::string>();
    std::vector<caf::actor> actors;
    for (const char c : {'a', 'b', 'c'})
      actors.push_back(node.own(node.system().spawn([=](caf::event_based_actor*) -> caf::behavior {
        return {[=](int) { order->push_back(c); }};
      })));
    node.run_all();
    for (const auto& a : actors)
      caf::anon_send(a, 1);
    node.run_all();
    return *order;
  };
  deterministic_system first_come;
  CHECK(order_of(first_come) == "abc");
  deterministic_system chosen;
  chosen.choose_by([](std::size_t count) { return count - 1; });
  CHECK(order_of(chosen) == "cba");
}

TEST_CASE("contract: the coordinator lets one actor go on until its mail is handled",
          "[contract]") {
  deterministic_system node;
  auto handled = std::make_shared<int>(0);
  auto actor = node.own(node.system().spawn(counter, handled));
  auto other = node.own(node.system().spawn(counter, handled));
  node.run_all();
  caf::anon_send(actor, 1);
  caf::anon_send(actor, 2);
  caf::anon_send(other, 3);
  auto* first = node.scheduler().jobs.front();
  node.scheduler().run_once(); // one message
  CHECK(*handled == 1);
  CHECK(node.scheduler().jobs.front() == first); // deterministic_system gives the others a turn
}

TEST_CASE("contract 15: an actor may run without end unless it is limited", "[contract]") {
  CHECK(caf::defaults::scheduler::max_throughput == std::numeric_limits<std::size_t>::max());
}

} // namespace boyd::contract_lifetime_test
