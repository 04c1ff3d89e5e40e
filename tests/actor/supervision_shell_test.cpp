#include "actors/supervision/shell.hpp"
#include "boyd/faults/points.hpp"
#include "support/actor_system.hpp"
#include "support/heard_log.hpp"
#include "support/pch.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <stdexcept>

namespace boyd::supervision_shell_test {

using namespace boyd;
using boyd::test::deterministic_system;
using boyd::test::heard_log;

namespace {

struct shared_view {
  std::vector<child_view> children;
  std::map<std::string, caf::actor> handles;
  std::vector<std::string> starts;
  int failing_starts = 0;       ///< the next starts of "b" throw
  int failing_constructors = 0; ///< the next "c" throw in their own state's constructor
  int failing_behaviours = 0;   ///< the next "c" throw while they make their behaviour
  std::vector<silent_part> silent;
  bool stopped = false;
};
using view_ptr = std::shared_ptr<shared_view>;

struct tiny_state {
  std::unique_ptr<supervisor_shell<caf::event_based_actor>> shell;
  static inline const char* name = "tiny";
};

caf::behavior child(caf::event_based_actor* self) {
  install_handlers(self, "child");
  return {
      [](int how) -> int {
        if (how == 1)
          throw std::runtime_error("child threw");
        if (how == 2)
          throw 7;
        return how;
      },
      [](const std::string&) {},
  };
}

/// As `child`; throws in its own constructor, within spawn, or when it makes its behaviour, which
/// is when it first runs.
class brittle : public caf::event_based_actor {
 public:
  brittle(caf::actor_config& c, view_ptr seen) : caf::event_based_actor(c), seen_(std::move(seen)) {
    if (seen_->failing_constructors > 0 && seen_->failing_constructors-- > 0)
      throw std::runtime_error("constructor threw");
  }

  caf::behavior make_behavior() override {
    auto made = child(this); // as every part: first the handlers, which keep the reason
    if (seen_->failing_behaviours > 0 && seen_->failing_behaviours-- > 0)
      throw std::runtime_error("behaviour threw");
    return made;
  }

 private:
  view_ptr seen_;
};

/// Lives, takes its mail, but never answers a ping.
struct mute_state {
  std::vector<caf::typed_response_promise<pong>> held;
  static inline const char* name = "mute";
};

caf::behavior mute(caf::stateful_actor<mute_state>* self, std::shared_ptr<bool> speaks) {
  install_handlers(self, "mute");
  return {[self, speaks](ping&) {
    auto promise = self->make_response_promise<pong>();
    if (*speaks)
      promise.deliver(pong{});
    else
      self->state.held.push_back(promise);
    return promise;
  }};
}

void settle(caf::stateful_actor<tiny_state>* self, const view_ptr& seen) {
  auto& shell = *self->state.shell;
  if (!shell.reconcile()) {
    self->quit(crash_error(shell.escalation()));
    return;
  }
  seen->children = shell.view();
  for (const char* id : {"a", "b", "c"})
    seen->handles[id] = shell.handle(id);
  seen->stopped = shell.all_stopped();
}

/// b holds a's handle; c stands alone.
caf::behavior tiny(caf::stateful_actor<tiny_state>* self, std::shared_ptr<clock_port> clock,
                   view_ptr seen) {
  install_handlers(self, "tiny");
  using shell_type = supervisor_shell<caf::event_based_actor>;
  self->state.shell =
      std::make_unique<shell_type>(self, "tiny", clock, std::make_shared<sim::seeded_entropy>(1),
                                   restart_intensity{.restarts = 3, .period = 60s});
  for (const char* id : {"a", "b", "c"}) {
    child_rule rule{.id = id, .depends_on = {}, .restart = restart_kind::permanent};
    if (rule.id == "b")
      rule.depends_on = {"a"};
    self->state.shell->add({rule, [self, seen, id] {
                              if (std::string(id) == "b" && seen->failing_starts > 0) {
                                --seen->failing_starts;
                                throw std::runtime_error("no start");
                              }
                              seen->starts.emplace_back(id);
                              auto& system = self->system();
                              return std::string(id) == "c"
                                         ? caf::actor(system.spawn<brittle>(seen))
                                         : caf::actor(system.spawn(child));
                            }});
  }
  self->set_down_handler([self, seen](caf::down_msg& m) {
    if (self->state.shell->on_down(m))
      settle(self, seen);
  });
  settle(self, seen);
  return {
      [self, seen](supervise_tick&) { settle(self, seen); },
      [self](stop_overdue& m) { self->state.shell->on_overdue(m); },
      [self, seen](stop_order&) {
        self->state.shell->begin_shutdown();
        settle(self, seen);
      },
  };
}

struct fixture {
  deterministic_system node;
  view_ptr seen = std::make_shared<shared_view>();
  caf::actor supervisor;

  explicit fixture(int failing_starts = 0, int failing_constructors = 0,
                   int failing_behaviours = 0) {
    seen->failing_starts = failing_starts;
    seen->failing_constructors = failing_constructors;
    seen->failing_behaviours = failing_behaviours;
    supervisor = node.own(node.system().spawn(tiny, node.clock(), seen));
    node.run_all();
  }
  ~fixture() { seen->handles.clear(); }

  const child_view& view(const std::string& id) const {
    return *std::find_if(seen->children.begin(), seen->children.end(),
                         [&](const auto& c) { return c.id == id; });
  }
};

} // namespace

TEST_CASE("case 1 actor-throws: a child that throws is restarted and its text is kept",
          "[supervision]") {
  for (const auto& [how, text] :
       {std::pair{1, "child threw"}, std::pair{2, "exception that is not a std::exception"}}) {
    fixture f;
    const heard_log log;
    const auto before = f.seen->handles["c"];
    auto caller = f.node.ask<int>(before, how);
    f.node.run_all();
    CHECK(caller.failed()); // the caller hears at once
    f.node.advance(1min);
    INFO(log.text());
    CHECK(log.times(text) == 1);
    CHECK(log.times("tiny: c ended: " + std::string(text)) == 1);
    CHECK(f.view("c").last_error == text);
    CHECK(f.view("c").restarts == 1);
    CHECK(f.view("c").state == "running");
    CHECK(f.seen->handles["c"] != before);
    CHECK(f.view("a").restarts == 0);
  }
}

TEST_CASE("who holds a dead sibling's handle is started again with the new one", "[supervision]") {
  fixture f;
  const auto a = f.seen->handles["a"];
  const auto b = f.seen->handles["b"];
  const auto c = f.seen->handles["c"];
  caf::anon_send(a, 1);
  f.node.run_all();
  CHECK(f.seen->handles["a"] != a);
  CHECK(f.seen->handles["b"] != b);
  CHECK(f.seen->handles["c"] == c);
  CHECK(f.node.ended(b));
  CHECK(f.seen->starts == std::vector<std::string>{"a", "b", "c", "a", "b"});
  CHECK(f.view("b").restarts == 0); // it did not fail
  CHECK(f.view("b").renewals == 1);
  CHECK(f.view("a").renewals == 0);
  CHECK(f.view("c").renewals == 0);
}

TEST_CASE("case 2 init-throws: a factory that throws is repeated with a back-off",
          "[supervision]") {
  fixture f(2);
  CHECK(f.view("b").state == "restarting");
  CHECK(f.view("b").last_error == "no start");
  f.node.advance(1s);
  CHECK(f.view("b").state == "running");
  CHECK(f.view("b").restarts == 2);
}

TEST_CASE("case 2 init-throws: a part that throws in its constructor or its behaviour is repeated",
          "[supervision]") {
  const auto [constructors, behaviours, text] =
      GENERATE(std::tuple{2, 0, "constructor threw"}, std::tuple{0, 2, "behaviour threw"},
               std::tuple{1, 1, "behaviour threw"});
  fixture f(0, constructors, behaviours);
  f.node.advance(1min);
  CHECK(f.view("c").state == "running");
  CHECK(f.view("c").restarts == 2);
  CHECK(f.view("c").last_error == text);
  CHECK_FALSE(f.node.ended(f.supervisor));
  CHECK_FALSE(f.node.ended(f.seen->handles["c"]));
  CHECK(f.view("a").restarts == 0);
}

TEST_CASE("case 2 init-throws: a part that never starts uses up the restarts, and no more",
          "[supervision]") {
  fixture f(0, 1000, 0);
  f.node.advance(1min);
  CHECK(f.node.ended(f.supervisor));
  const auto starts = 1000 - f.seen->failing_constructors;
  CHECK(starts == 4);
  test::tell_figure("case 2: a constructor that throws for ever: " + std::to_string(starts) +
                    " starts, then the supervisor ends with the reason");
}

TEST_CASE("too many failures end the supervisor with the reason", "[supervision]") {
  fixture f;
  const auto a = f.seen->handles["a"];
  for (int i = 0; i < 4; ++i) {
    caf::anon_send(f.seen->handles["c"], 1);
    f.node.run_all();
    f.node.advance(1s);
  }
  CHECK(f.node.ended(f.supervisor));
  CHECK(f.node.ended(a)); // what still lived went with it
}

TEST_CASE("case 4 exit-behind-mail: a stop overtakes 100,000 waiting messages", "[supervision]") {
  fixture f;
  const auto c = f.seen->handles["c"];
  for (int i = 0; i < 100'000; ++i)
    caf::anon_send(c, std::string("mail"));
  caf::anon_send<caf::message_priority::high>(f.supervisor, stop_order{});
  const auto begin = std::chrono::steady_clock::now();
  const auto jobs = f.node.run_all(1000);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  CHECK(jobs < 1000);
  CHECK(took <= boyd::test::at_most<std::chrono::duration<double, std::milli>>(1s, 20s));
  boyd::test::tell_figure("case 4: stopped after " + std::to_string(took.count()) +
                          " ms, over 100,000 messages");
  CHECK(f.seen->stopped);
  CHECK(f.node.ended(c));
}

TEST_CASE("case 4 exit-behind-mail: a child's end overtakes what waits for its supervisor",
          "[supervision]") {
  fixture f;
  for (int i = 0; i < 100'000; ++i)
    caf::anon_send(f.supervisor, supervise_tick{});
  caf::anon_send(f.seen->handles["c"], 1);
  CHECK(f.node.run_all(1000) == 1000); // most of it still waits
  CHECK(f.seen->starts == std::vector<std::string>{"a", "b", "c", "c"});
  f.node.run_all();
}

TEST_CASE("a child that does not stop in its grace is killed", "[supervision]") {
  deterministic_system node;
  auto seen = std::make_shared<shared_view>();
  auto clock = node.clock();
  auto stubborn = [](caf::event_based_actor* self) -> caf::behavior {
    self->set_exit_handler([self](caf::exit_msg& m) {
      if (m.reason == caf::exit_reason::kill)
        self->quit(m.reason);
    });
    return {[](int) {}};
  };
  auto supervisor =
      node.own(node.system().spawn([=](caf::stateful_actor<tiny_state>* self) -> caf::behavior {
        using shell_type = supervisor_shell<caf::event_based_actor>;
        self->state.shell = std::make_unique<shell_type>(
            self, "tiny", clock, std::make_shared<sim::seeded_entropy>(1), restart_intensity{});
        self->state.shell->add({child_rule{.id = "a", .depends_on = {}, .stop_grace = 5s},
                                [self, stubborn] { return self->system().spawn(stubborn); }});
        self->set_down_handler([self, seen](caf::down_msg& m) {
          self->state.shell->on_down(m);
          settle(self, seen);
        });
        settle(self, seen);
        return {
            [self, seen](supervise_tick&) { settle(self, seen); },
            [self](stop_overdue& m) { self->state.shell->on_overdue(m); },
            [self, seen](stop_order&) {
              self->state.shell->begin_shutdown();
              settle(self, seen);
            },
        };
      }));
  caf::anon_send(supervisor, stop_order{});
  node.run_all();
  node.advance(4s);
  CHECK_FALSE(seen->stopped);
  node.advance(2s);
  CHECK(seen->stopped);
  seen->handles.clear();
}

namespace {

/// A supervisor of "a", made by the test, and of "b", which always answers.
struct beating {
  deterministic_system node;
  view_ptr seen = std::make_shared<shared_view>();
  caf::actor supervisor;

  explicit beating(std::function<caf::actor(caf::actor_system&)> make_a) {
    const auto behave = [seen = seen, clock = node.clock(),
                         make_a](caf::stateful_actor<tiny_state>* self) -> caf::behavior {
      install_handlers(self, "tiny");
      auto& shell = self->state.shell;
      shell = std::make_unique<supervisor_shell<caf::event_based_actor>>(
          self, "tiny", clock, std::make_shared<sim::seeded_entropy>(1), restart_intensity{});
      shell->add({child_rule{.id = "a", .depends_on = {}},
                  [self, make_a] { return make_a(self->system()); }});
      shell->add({child_rule{.id = "b", .depends_on = {}},
                  [self] { return self->system().spawn(child); }});
      settle(self, seen);
      const auto look = [self, seen] {
        seen->silent = self->state.shell->silent();
        seen->children = self->state.shell->view();
      };
      return {[self, look](supervise_tick&) {
                self->state.shell->beat(limits::heartbeat);
                look();
              },
              [self, look](pong& m) {
                self->state.shell->on_pong(self->current_sender(), m);
                look();
              }};
    };
    supervisor = node.own(node.system().spawn(behave));
    node.run_all();
  }

  ~beating() {
    seen->handles.clear();
    node.kill(supervisor);
    node.run_all();
  }

  void beat(int times = 1) {
    for (int i = 0; i < times; ++i) {
      caf::anon_send(supervisor, supervise_tick{});
      node.run_all();
      node.advance(limits::heartbeat);
    }
  }
};

} // namespace

TEST_CASE("case 10 stuck-actor: one that lives but does not answer is silent within 30 seconds",
          "[supervision]") {
  auto speaks = std::make_shared<bool>(true);
  beating f([speaks](caf::actor_system& system) { return system.spawn(mute, speaks); });
  const auto& seen = *f.seen;
  f.beat(6);
  CHECK(seen.silent.empty()); // also who does not know the message has answered
  *speaks = false;
  f.beat(3);
  REQUIRE(seen.silent.size() == 1);
  CHECK(seen.silent.front().name == "a");
  CHECK(seen.children.front().state == "silent");
  CHECK(seen.children.front().reason.find("has not answered") == 0);
  const auto missed = seen.silent.front().missed;
  f.beat(3);
  CHECK(seen.silent.front().missed == missed + 3);
  *speaks = true;
  f.beat();
  CHECK(seen.silent.empty());
  CHECK(seen.children.front().state == "running");
}

TEST_CASE("fault points: parts whose answers are lost are silent, and well when one arrives",
          "[supervision][faults]") {
  const faults::isolation of_this_test;
  beating f([](caf::actor_system& system) { return system.spawn(child); });
  f.beat(2);
  REQUIRE(faults::arm({{"supervision.answer", faults::action::drop, -1}}, 1));
  f.beat(4);
  CHECK(f.seen->silent.size() == 2);
  CHECK(f.seen->children.front().state == "silent");
  faults::disarm();
  f.beat(2);
  CHECK(f.seen->silent.empty());
  CHECK(f.seen->children.front().state == "running");
}

TEST_CASE("fault points: a start that fails, or ends with an exception, is repeated",
          "[supervision][faults]") {
  const faults::isolation of_this_test;
  const auto what = GENERATE(faults::action::error, faults::action::crash);
  fixture f;
  REQUIRE(faults::arm({{"supervision.start", what, 2}}, 1));
  caf::anon_send(f.seen->handles["c"], 1);
  f.node.run_all();
  f.node.advance(1min);
  CHECK(faults::triggered("supervision.start") == 2);
  CHECK(f.view("c").state == "running");
  CHECK(f.view("c").restarts == 3);
  CHECK_THAT(f.view("c").last_error, Catch::Matchers::Contains("supervision.start"));
  CHECK(f.view("a").restarts == 0);
}

TEST_CASE("fault points: who does not hear of its end is killed when its grace is over",
          "[supervision][faults]") {
  const faults::isolation of_this_test;
  fixture f;
  const auto c = f.seen->handles["c"];
  REQUIRE(faults::arm({{"supervision.stop", faults::action::drop, -1}}, 1));
  caf::anon_send(f.supervisor, stop_order{});
  f.node.run_all();
  CHECK_FALSE(f.node.ended(c));
  f.node.advance(1min);
  CHECK(f.node.ended(c));
  CHECK(f.seen->stopped);
}

TEST_CASE("a process that stood still counts as busy for one interval, however long it was",
          "[supervision]") {
  auto busy = std::make_shared<milliseconds>(1s);
  beating f([busy](caf::actor_system& system) {
    return system.spawn([busy]() -> caf::behavior {
      return {[busy](ping&) { return pong{{}, *busy, {}}; }};
    });
  });
  const auto& silent = f.seen->silent;
  const auto beat_with = [&](milliseconds worker_busy) {
    *busy = worker_busy;
    f.beat();
  };
  beat_with(1s);
  beat_with(1h); // stopped for an hour: known are 11 s
  CHECK(silent.empty());
  beat_with(1h + 10s);
  REQUIRE(silent.size() == 1); // the machine ran, and it still is at it
  CHECK(silent.front().worker_busy == 21s);
  for (int i = 0; i < 10; ++i)
    beat_with(1h + 20s + i * 10s);
  REQUIRE(silent.size() == 1);
  CHECK(silent.front().worker_busy >= limits::stuck_worker);
  beat_with(2s); // another batch
  CHECK(silent.empty());
}

TEST_CASE("a ping overtakes 100,000 waiting messages", "[supervision]") {
  fixture f;
  const auto c = f.seen->handles["c"];
  for (int i = 0; i < 100'000; ++i)
    caf::anon_send(c, std::string("mail"));
  bool answered = false;
  f.node.system().spawn([&, c](caf::event_based_actor* self) -> caf::behavior {
    self->send<caf::message_priority::high>(c, ping{});
    return {[&, self](pong&) {
      answered = true;
      self->quit();
    }};
  });
  f.node.run_all(1000);
  CHECK(answered);
  f.node.run_all();
}

} // namespace boyd::supervision_shell_test
