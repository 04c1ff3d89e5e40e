#include "boyd/faults/points.hpp"
#include "echo_keeper.hpp"
#include "support/actor_system.hpp"
#include "support/pch.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/wait.hpp"

#include <caf/all.hpp>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace boyd::keeper_actor_test {

using namespace boyd;
using boyd::test::deterministic_system;
using boyd::test::echo_actor;
using boyd::test::echo_job;
using boyd::test::echo_reply;
using boyd::test::echo_request;

namespace {

/// The outside world of the echo keeper, as the test arranges it.
struct world {
  std::vector<std::size_t> batches;
  std::vector<std::string> done;
  int performers = 0;
  int probes = 0;
  int crashes_left = 0; ///< batches that end the worker
  std::string poison;   ///< a request that always ends the worker
  part_health health;
};

class echo_performer : public performer<echo_request, echo_reply> {
 public:
  explicit echo_performer(std::shared_ptr<world> w) : world_(std::move(w)) { ++world_->performers; }

  void perform(std::vector<echo_job>& batch) override {
    world_->batches.push_back(batch.size());
    if (world_->crashes_left > 0) {
      --world_->crashes_left;
      throw std::runtime_error("worker down");
    }
    for (auto& j : batch) {
      if (j.request.text == world_->poison)
        throw 7;
      world_->done.push_back(j.request.text);
      j.reply = echo_reply{j.request.text + "!"};
    }
  }
  void probe() override { ++world_->probes; }
  part_health health() override { return world_->health; }

 private:
  std::shared_ptr<world> world_;
};

/// For what a keeper does as long as it does not give up.
constexpr restart_intensity endless{1'000'000, 30s};

struct fixture {
  deterministic_system node;
  std::shared_ptr<long_work> work = std::make_shared<long_work>();
  std::shared_ptr<worker_roll> roll = std::make_shared<worker_roll>();
  std::shared_ptr<world> outside = std::make_shared<world>();
  echo_actor keeper;

  explicit fixture(keeper_limits l = {}, restart_intensity intensity = endless,
                   std::function<bool(const echo_request&)> is_proof = {},
                   std::shared_ptr<entropy> random = std::make_shared<sim::seeded_entropy>(1)) {
    keeper_parts<echo_request, echo_reply> parts;
    parts.name = "echo";
    parts.worker_intensity = intensity;
    parts.is_proof = std::move(is_proof);
    parts.long_work = work;
    parts.roll = roll;
    parts.clock = node.clock();
    parts.random = std::move(random);
    parts.detached = false;
    parts.limits = l;
    parts.make_performer = [w = outside] { return std::make_unique<echo_performer>(w); };
    keeper =
        node.own(node.system().spawn(plain_keeper<echo_actor, echo_request, echo_reply>, parts));
  }

  test::asked<echo_reply> ask(const std::string& text) {
    return node.ask<echo_reply>(keeper, echo_request{{}, text});
  }

  /// How long its worker has been busy by its pong, after `most_jobs` messages.
  milliseconds busy(std::size_t most_jobs = 1000) {
    const auto told = std::make_shared<milliseconds>(-1);
    node.system().spawn([told, k = keeper](caf::event_based_actor* self) {
      self->request(caf::actor_cast<caf::actor>(k), std::chrono::minutes{1440}, ping{})
          .then([told](pong& p) { *told = p.worker_busy; }, [](caf::error&) {});
    });
    node.run_all(most_jobs);
    return *told;
  }

  part_health health() {
    auto h = node.ask_now<part_health>(keeper, health_query{});
    REQUIRE(h.ok());
    return h.value();
  }
};

} // namespace

TEST_CASE("a keeper answers through its worker", "[keeper][actor]") {
  fixture f;
  auto answer = f.ask("a");
  f.node.run_all();
  REQUIRE(answer.ok());
  CHECK(answer.value().text == "a!");
  CHECK(f.outside->performers == 1);
}

TEST_CASE("a request whose asker has given up is refused, one in time is not", "[keeper][actor]") {
  fixture f;
  const auto now = f.node.system().clock().now();
  auto late = f.node.ask<echo_reply>(f.keeper, echo_request{{}, "late", now});
  auto early = f.node.ask<echo_reply>(f.keeper, echo_request{{}, "early", now + 1s});
  f.node.run_all();
  REQUIRE(late.answered());
  CHECK(late.why().code == errc::timed_out);
  CHECK(early.ok());
  CHECK(f.outside->done == std::vector<std::string>{"early"});
}

TEST_CASE("requests that wait share a batch", "[keeper][actor]") {
  fixture f;
  std::vector<test::asked<echo_reply>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(f.ask(std::to_string(i)));
  f.node.run_all();
  for (int i = 0; i < 20; ++i)
    CHECK(all[static_cast<std::size_t>(i)].value().text == std::to_string(i) + "!");
  CHECK(f.outside->batches.size() < 20);
  CHECK(*std::max_element(f.outside->batches.begin(), f.outside->batches.end()) > 1);
}

TEST_CASE("case 6 mailbox-flood: a flood is refused, not stored", "[keeper][actor]") {
  fixture f({.queue = 4, .group = 2, .reserve = 0});
  std::vector<test::asked<echo_reply>> all;
  for (int i = 0; i < 50; ++i)
    all.push_back(f.ask(std::to_string(i)));
  f.node.run_all();
  int refused = 0;
  for (const auto& a : all) {
    REQUIRE(a.answered());
    if (!a.ok()) {
      CHECK(a.why().code == errc::overloaded);
      CHECK(a.why().next == "try again in a second");
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK(f.outside->done.size() == 50 - static_cast<std::size_t>(refused));
}

TEST_CASE("a worker's death costs no request", "[keeper][actor]") {
  fixture f;
  f.outside->crashes_left = 1;
  auto answer = f.ask("a");
  f.node.run_all();
  f.node.advance(1s);
  REQUIRE(answer.ok());
  CHECK(f.outside->performers == 2);
  CHECK(f.outside->done == std::vector<std::string>{"a"});
  const auto h = f.health();
  CHECK(h.ok);
  CHECK(h.worker_restarts == 1);
  CHECK(h.last_error == "worker down");
}

TEST_CASE("a request that ends its worker is answered and the others go on", "[keeper][actor]") {
  fixture f;
  f.outside->poison = "poison";
  auto good = f.ask("good");
  auto bad = f.ask("poison");
  auto later = f.ask("later");
  f.node.run_all();
  f.node.advance(10s);
  REQUIRE(good.ok());
  REQUIRE(later.ok());
  REQUIRE(bad.answered());
  CHECK(bad.why().code == errc::bug);
}

TEST_CASE("a keeper without a worker says so and recovers", "[keeper][actor]") {
  fixture f;
  f.outside->crashes_left = 2; // the first restart is at once, the second waits
  auto answer = f.ask("a");
  f.node.run_all();
  // The poison rule answers what has ended two workers; the keeper itself goes on.
  f.node.advance(1ms);
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason.find("worker down") != std::string::npos);
  f.node.advance(1s);
  CHECK(f.health().ok);
  CHECK(answer.answered());
  auto next = f.ask("b");
  f.node.run_all();
  CHECK(next.ok());
}

namespace {

/// Chance that is none.
class fixed_chance final : public entropy {
 public:
  explicit fixed_chance(std::uint64_t value) : value_(value) {}
  std::uint64_t next() override { return value_; }

 private:
  std::uint64_t value_;
};

} // namespace

TEST_CASE("keepers whose workers died together do not start the next ones together",
          "[keeper][actor]") {
  for (const bool early : {true, false}) {
    fixture f({}, endless, {}, std::make_shared<fixed_chance>(early ? 0 : ~std::uint64_t{0}));
    f.outside->crashes_left = 2;
    const auto poison = f.ask("a");
    f.node.run_all();
    const auto next = f.ask("b"); // shows that there is a worker
    f.node.advance(limits::backoff_base / 2 - 1ms);
    CHECK(f.outside->performers == 2);
    f.node.advance(2ms);
    CHECK(f.outside->performers == (early ? 3 : 2));
    f.node.advance(limits::backoff_base / 2);
    CHECK(f.outside->performers == 3);
    CHECK(next.ok());
  }
}

TEST_CASE("an order that is lost or late, or its answer, costs time and nothing else",
          "[keeper][actor][faults]") {
  const faults::isolation of_this_test;
  for (const auto* point : {"keeper.batch", "keeper.done"})
    for (const auto what : {faults::action::drop, faults::action::delay}) {
      fixture f;
      f.node.advance(2s);
      faults::arming a;
      a.point = point;
      a.what = what;
      a.delay = what == faults::action::delay ? 60s : 0s;
      REQUIRE(faults::arm({a}, 1));
      const auto first = f.ask("a");
      f.node.run_all();
      INFO(point << " " << faults::name_of(what));
      CHECK_FALSE(first.answered());
      const auto second = f.ask("b"); // waits behind it
      // The supervisor's next ping.
      const auto ping_at = [&](milliseconds after) {
        f.node.advance(after);
        caf::anon_send(caf::actor_cast<caf::actor>(f.keeper), ping{});
        f.node.run_all();
      };
      ping_at(order_patience - 1s);
      CHECK_FALSE(first.answered());
      ping_at(2s);
      REQUIRE(first.ok());
      REQUIRE(second.ok());
      f.node.advance(2min); // what was late arrives
      CHECK(f.outside->done == std::vector<std::string>{"a", "b"});
      CHECK(f.outside->performers == 1);
      const auto third = f.ask("c");
      f.node.run_all();
      CHECK(third.ok());
      CHECK(f.health().ok);
      faults::disarm();
    }
}

TEST_CASE("the worker's health is the keeper's", "[keeper][actor]") {
  fixture f;
  f.outside->health.ok = false;
  f.outside->health.reason = "disk is full";
  f.node.advance(3s);
  CHECK(f.outside->probes >= 2);
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason == "disk is full");
  f.outside->health = {};
  f.node.advance(3s);
  CHECK(f.health().ok);
  CHECK(f.health().last_error == "disk is full");
}

TEST_CASE("a trouble is one line in the log when it begins and one when it ends",
          "[keeper][actor]") {
  std::ostringstream told;
  const auto logger = std::make_shared<spdlog::logger>(
      "told", std::make_shared<spdlog::sinks::ostream_sink_mt>(told));
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(logger);
  const auto lines = [&] {
    const auto text = told.str();
    return std::count(text.begin(), text.end(), '\n');
  };
  {
    fixture f;
    f.outside->health.ok = false;
    for (int second = 0; second < 30; ++second) {
      f.outside->health.reason = "try " + std::to_string(second);
      f.node.advance(1s);
    }
    CHECK(lines() == 1);
    f.node.advance(60s);
    CHECK(lines() == 2); // what it is now
    f.node.advance(600s);
    CHECK(lines() == 2);
    f.outside->health = {};
    f.node.advance(2s);
    CHECK(lines() == 3);
    CHECK(told.str().find("echo: recovered") != std::string::npos);
  }
  spdlog::set_default_logger(before);
}

TEST_CASE("an outage of ten minutes costs no worker (promise: a database outage is not a crash)",
          "[keeper][actor]") {
  fixture f;
  f.outside->health.ok = false;
  f.outside->health.reason = "the server is away";
  for (int minute = 0; minute < 10; ++minute) {
    auto answer = f.ask("while it is away");
    f.node.advance(1min);
    CHECK(answer.answered());
    CHECK_FALSE(f.health().ok);
  }
  CHECK(f.health().worker_restarts == 0);
  CHECK(f.outside->performers == 1);
  f.outside->health = {};
  f.node.advance(3s);
  CHECK(f.health().ok);
}

TEST_CASE("a keeper's pong tells for how long its worker has been away", "[keeper][actor]") {
  fixture f;
  f.node.advance(1min);
  CHECK(f.busy() == 0ms);
  // The newest job first: the worker, which got its batch before, has to wait.
  auto answer = f.ask("slow");
  CHECK(f.node.run_one());
  CHECK(f.node.run_one());
  f.node.choose_by([](std::size_t count) { return count - 1; });
  f.node.clock()->advance(25s);
  CHECK(f.busy(3) == 25s);
  CHECK_FALSE(answer.answered());
  f.node.run_all();
  CHECK(answer.ok());
  CHECK(f.busy() == 0ms);
}

TEST_CASE("a worker that dies with each batch is as good as one that does not come back",
          "[keeper][actor]") {
  fixture f;
  f.node.advance(1min);
  f.outside->crashes_left = 1'000'000;
  const auto from = f.node.clock()->steady();
  while (f.node.clock()->steady() - from < limits::stuck_worker) {
    static_cast<void>(f.ask("a"));
    f.node.advance(900ms);
  }
  CHECK(f.busy() >= limits::stuck_worker - limits::backoff_cap);
  f.outside->crashes_left = 0;
  f.node.advance(limits::backoff_cap);
  auto answer = f.ask("b");
  f.node.run_all();
  CHECK(answer.ok());
  CHECK(f.busy() == 0ms);
}

TEST_CASE("case 8 crash-loop: a keeper ends when its worker has died too often",
          "[keeper][actor]") {
  const restart_intensity intensity{3, 60s};
  fixture f({}, intensity);
  f.outside->crashes_left = 3;
  auto poison = f.ask("a");
  f.node.advance(5s);
  auto next = f.ask("b");
  f.node.advance(5s);
  REQUIRE_FALSE(deterministic_system::ended(f.keeper));
  CHECK(next.ok());
  CHECK(f.outside->performers == 4); // after three restarts
  f.node.advance(intensity.period);
  f.outside->crashes_left = 1;
  auto later = f.ask("c");
  f.node.advance(5s);
  CHECK(later.ok()); // the others are forgotten
  std::string why;
  f.node.own(caf::actor(
      f.node.system().spawn([&why, k = f.keeper](caf::event_based_actor* self) -> caf::behavior {
        self->monitor(caf::actor_cast<caf::actor>(k));
        self->set_down_handler([&why](caf::down_msg& m) {
          why = is_exhausted(m.reason) ? text_of(m.reason) : "failed";
        });
        return {[](int) {}};
      })));
  f.outside->crashes_left = 3;
  auto lost = f.ask("d");
  auto waits = f.ask("e");
  f.node.advance(5s);
  CHECK(deterministic_system::ended(f.keeper));
  CHECK(why == "its worker failed 4 times within 1m: worker down");
  CHECK(lost.answered());
  CHECK(waits.answered()); // nobody waits for a keeper that is gone
}

TEST_CASE("case 8 crash-loop: probes that go well do not hide that each batch ends the worker",
          "[keeper][actor]") {
  const restart_intensity intensity{3, 60s};
  fixture f({}, intensity);
  f.outside->crashes_left = 1'000'000;
  for (int asked = 0; asked < 2; ++asked) {
    REQUIRE_FALSE(deterministic_system::ended(f.keeper));
    auto answer = f.ask("a"); // each ends two workers
    f.node.advance(10min);
    CHECK(answer.answered());
  }
  CHECK(f.outside->probes > 0);
  CHECK(deterministic_system::ended(f.keeper));
}

TEST_CASE("deaths that are far apart are forgotten once the worker has done its work",
          "[keeper][actor]") {
  fixture f({}, {3, 60s});
  for (int asked = 0; asked < 10; ++asked) {
    f.outside->crashes_left = 1;
    auto answer = f.ask("a");
    f.node.advance(10min);
    CHECK(answer.ok());
  }
  CHECK_FALSE(deterministic_system::ended(f.keeper));
}

TEST_CASE("work that is no proof does not hide that other work ends the worker",
          "[keeper][actor]") {
  fixture f({}, {3, 60s}, [](const echo_request& r) { return r.text != "question"; });
  f.outside->poison = "write";
  for (int asked = 0; asked < 2; ++asked) {
    REQUIRE_FALSE(deterministic_system::ended(f.keeper));
    static_cast<void>(f.ask("write"));
    f.node.advance(10min);
    static_cast<void>(f.ask("question"));
    f.node.advance(10min);
  }
  CHECK(f.outside->done == std::vector<std::string>{"question"});
  CHECK(deterministic_system::ended(f.keeper));
}

TEST_CASE("a keeper whose worker does long work says what, and is not taken for stuck",
          "[keeper][actor]") {
  const auto busy_after = [](milliseconds passed) {
    fixture f;
    f.outside->crashes_left = 2;
    static_cast<void>(f.ask("a")); // no worker is there for a moment
    f.node.run_all();
    f.work->begin("moves house", f.node.clock()->steady());
    f.node.clock()->advance(passed);
    return f.busy();
  };
  CHECK(busy_after(10min) == 0ms);
  CHECK(busy_after(limits::long_work + 10min) >= limits::long_work + 10min);
  fixture f;
  f.node.advance(1s);
  f.work->begin("moves house", f.node.clock()->steady());
  f.node.clock()->advance(3min);
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason == "moves house, for 3m");
  f.work->end();
  CHECK(f.health().ok);
}

TEST_CASE("who asks which workers live is told their part's name until they end",
          "[keeper][actor]") {
  fixture f;
  f.node.advance(1s);
  CHECK(f.roll->names() == std::vector<std::string>{"echo"});
  f.outside->crashes_left = 1;
  auto answer = f.ask("a");
  f.node.advance(1s);
  CHECK(f.roll->names() == std::vector<std::string>{"echo"});
  f.node.kill(f.keeper);
  f.node.run_all();
  CHECK(f.roll->names().empty());
}

TEST_CASE("case 3 promise-orphan: a keeper that ends answers everybody who waits",
          "[keeper][actor]") {
  for (const auto reason : {caf::exit_reason::kill, caf::exit_reason::user_shutdown}) {
    fixture f({.queue = 100, .group = 2, .reserve = 0});
    f.outside->crashes_left = 1000;
    f.node.advance(1s);
    std::vector<test::asked<echo_reply>> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(f.ask(std::to_string(i)));
    f.node.advance(150ms);
    std::erase_if(all, [](const auto& a) { return a.answered() || a.failed(); });
    REQUIRE(all.size() >= 5);
    f.node.kill(f.keeper, reason);
    // No time passes: whoever is answered now has not waited for a limit.
    f.node.run_all();
    CHECK(f.node.ended(f.keeper));
    for (const auto& a : all) {
      REQUIRE(a.answered());
      REQUIRE_FALSE(a.ok());
      CHECK(a.why().code == errc::actor_down);
    }
  }
}

} // namespace boyd::keeper_actor_test
