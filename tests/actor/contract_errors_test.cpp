#include "actors/support/handlers.hpp"
#include "messages/message.hpp"
#include "support/actor_system.hpp"
#include "support/pch.hpp"

#include <caf/all.hpp>

#include <stdexcept>

namespace boyd::contract_errors_test {

using namespace boyd;
using boyd::test::deterministic_system;

/// What Boyd's design assumes of CAF 0.17.6; the numbers are those of ARCHITECTURE's list. When one
/// of these fails, CAF has changed, and the design may be simplified or must be.

namespace {

/// Remembers the reason of the next DOWN.
struct watch {
  std::shared_ptr<std::vector<caf::error>> downs = std::make_shared<std::vector<caf::error>>();

  caf::actor over(deterministic_system& node, const caf::actor& watched, int times = 1) const {
    auto seen = downs;
    return node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
      for (int i = 0; i < times; ++i)
        self->monitor(watched);
      self->set_down_handler([=](caf::down_msg& m) { seen->push_back(m.reason); });
      return {[](int) {}};
    }));
  }
};

caf::behavior thrower(caf::event_based_actor*) {
  return {[](int) -> int { throw std::runtime_error("the text"); }};
}

caf::behavior int_thrower(caf::event_based_actor* self) {
  install_handlers(self, "int_thrower");
  return {[](int) -> int { throw 7; }};
}

caf::behavior handled_thrower(caf::event_based_actor* self) {
  install_handlers(self, "handled_thrower");
  return thrower(self);
}

/// The reason with which an actor of `f` goes down when it handles a request.
caf::error reason_of(deterministic_system& node,
                     const std::function<caf::behavior(caf::event_based_actor*)>& f) {
  auto actor = node.own(node.system().spawn(f));
  watch w;
  w.over(node, actor);
  node.run_all();
  auto answer = node.ask<int>(actor, 1);
  node.run_all();
  CHECK(answer.failed());
  REQUIRE(w.downs->size() == 1);
  return w.downs->front();
}

struct throwing_state {
  throwing_state() { throw std::runtime_error("at construction"); }
  static inline const char* name = "throwing";
};

} // namespace

TEST_CASE("contract 7: DOWN carries no text of an exception, but with our handlers it does",
          "[contract]") {
  deterministic_system node;
  const auto bare = reason_of(node, thrower);
  CHECK(bare == caf::sec::runtime_error);
  CHECK(text_of(bare).find("the text") == std::string::npos);
  CHECK(text_of(reason_of(node, handled_thrower)) == "the text");
  CHECK(text_of(reason_of(node, int_thrower)) == "exception that is not a std::exception");
}

TEST_CASE("contract 7: a state that throws at construction throws at the spawner", "[contract]") {
  deterministic_system node;
  const auto spawn = [&] {
    node.system().spawn(
        [](caf::stateful_actor<throwing_state>*) -> caf::behavior { return {[](int) {}}; });
  };
  CHECK_THROWS_AS(spawn(), std::runtime_error);
}

TEST_CASE("contract 6: an error that answers a plain send ends the sender without a handler",
          "[contract]") {
  deterministic_system node;
  auto refuser = node.own(node.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](int) -> caf::result<int> { return caf::sec::invalid_argument; }};
  }));
  const auto sender = [&](bool handled) {
    return node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
      if (handled)
        install_handlers(self, "sender");
      return {[=](const std::string&) { self->send(refuser, 1); }};
    }));
  };
  auto bare = sender(false);
  auto handled = sender(true);
  caf::anon_send(bare, std::string("go"));
  caf::anon_send(handled, std::string("go"));
  node.run_all();
  CHECK(node.ended(bare));
  CHECK_FALSE(node.ended(handled));
}

TEST_CASE("contract 5: a dropped promise answers nothing", "[contract]") {
  deterministic_system node;
  auto dropper = node.own(node.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
    return {[self](int) -> caf::result<int> {
      (void)self->make_response_promise();
      return caf::delegated<int>{};
    }};
  }));
  auto answer = node.ask<int>(dropper, 1, milliseconds{500});
  node.run_all();
  CHECK_FALSE(answer.answered());
  CHECK_FALSE(answer.failed());
  node.advance(milliseconds{500});
  REQUIRE(answer.failed());
  CHECK(**answer.failure == caf::sec::request_timeout);
}

TEST_CASE("contract 10: every monitor call adds one DOWN", "[contract]") {
  deterministic_system node;
  auto watched = node.own(node.system().spawn(thrower));
  watch w;
  w.over(node, watched, 3);
  node.run_all();
  node.kill(watched);
  node.run_all();
  CHECK(w.downs->size() == 3);
}

TEST_CASE("contract 10: demonitor takes an address", "[contract]") {
  deterministic_system node;
  auto watched = node.own(node.system().spawn(thrower));
  auto downs = std::make_shared<int>(0);
  auto watcher = node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(watched);
    self->demonitor(watched.address());
    self->set_down_handler([=](caf::down_msg&) { ++*downs; });
    return {[](int) {}};
  }));
  node.run_all();
  node.kill(watched);
  node.run_all();
  CHECK(*downs == 0);
}

TEST_CASE("contract 11: atoms have at most ten characters, error code 0 is no error",
          "[contract]") {
  static_assert(caf::atom("abcdefghij") != caf::atom("abcdefghi"));
  CHECK(caf::to_string(caf::atom("abcdefghij")) == "abcdefghij");
  CHECK_FALSE(static_cast<bool>(caf::error{0, caf::atom("boyd")}));
  CHECK(static_cast<bool>(caf::error{1, caf::atom("boyd")}));
}

TEST_CASE("contract 12: a promise takes the sender out of the handler", "[contract]") {
  deterministic_system node;
  auto before = std::make_shared<bool>(false);
  auto after = std::make_shared<bool>(true);
  auto actor = node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
    return {[=](int) {
      *before = self->current_sender() != nullptr;
      auto promise = self->make_response_promise();
      *after = self->current_sender() != nullptr;
      promise.deliver(1);
    }};
  }));
  (void)node.ask<int>(actor, 1);
  node.run_all();
  CHECK(*before);
  CHECK_FALSE(*after);
}

TEST_CASE("contract 12: quit drops pending response handlers", "[contract]") {
  deterministic_system node;
  auto called = std::make_shared<bool>(false);
  auto slow = node.own(node.system().spawn(
      [](caf::event_based_actor*) -> caf::behavior { return {[](int x) { return x; }}; }));
  auto asker = node.own(node.system().spawn([=](caf::event_based_actor* self) -> caf::behavior {
    self->request(slow, std::chrono::seconds{1}, 1)
        .then([=](int) { *called = true; }, [=](caf::error&) { *called = true; });
    return {[=](const std::string&) { self->quit(); }};
  }));
  caf::anon_send<caf::message_priority::high>(asker, std::string("quit"));
  node.run_all();
  node.advance(std::chrono::seconds{2});
  CHECK(node.ended(asker));
  CHECK_FALSE(*called);
}

} // namespace boyd::contract_errors_test
