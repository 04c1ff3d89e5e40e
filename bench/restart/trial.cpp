#include "bench/restart/trial.hpp"

#include "actors/supervision/shell.hpp"
#include "actors/support/handlers.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/wiring.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/entropy.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

namespace boyd::bench {

namespace {

struct question : message {};
struct end_badly : message {};
struct where_query : message {};
struct next_crash : message {};
struct begin : message {};

constexpr auto longest_trials = std::chrono::minutes{5};

using child_actor = caf::typed_actor<
    // Answers 1.
    caf::replies_to<question>::with<int>,
    // Throws.
    caf::reacts_to<end_badly>>;

/// Who lives; its address tells one child from the next.
struct where_reply : message {
  child_actor child;
};

using boss_actor = caf::typed_actor<
    // The living child, or nobody.
    caf::replies_to<where_query>::with<where_reply>>;

using boss_impl = boss_actor::extend<caf::reacts_to<supervise_tick>, caf::reacts_to<stop_overdue>>;

struct all_times : message {
  std::vector<double> us;
};

using crasher_actor = caf::typed_actor<
    // Makes all the crashes, then answers.
    caf::replies_to<begin>::with<all_times>>;

using crasher_impl = crasher_actor::extend<caf::reacts_to<next_crash>>;

/// The system's clock and what was added to it: so the supervisor's patience is renewed between
/// two crashes without a wait.
class skipping_clock final : public clock_port {
 public:
  utc_time now() const override { return real_->now(); }
  steady_time steady() const override { return real_->steady() + milliseconds{skipped_.load()}; }

  void skip(milliseconds by) { skipped_ += by.count(); }

 private:
  std::shared_ptr<clock_port> real_ = adapters::make_system_clock();
  std::atomic<milliseconds::rep> skipped_ = 0;
};

child_actor::behavior_type child(child_actor::pointer self) {
  install_handlers(self, "child");
  return {[](question&) { return 1; }, [](end_badly&) { throw std::runtime_error("made to end"); }};
}

struct boss_state {
  std::unique_ptr<supervisor_shell<boss_impl::base>> shell;
  static inline const char* name = "boss";
};

boss_impl::behavior_type boss(boss_impl::stateful_pointer<boss_state> self,
                              std::shared_ptr<clock_port> clock) {
  install_handlers(self, "boss");
  auto& s = self->state;
  s.shell = std::make_unique<supervisor_shell<boss_impl::base>>(
      self, "boss", std::move(clock), adapters::make_system_entropy(), restart_intensity{});
  const auto reconcile = [self] {
    if (!self->state.shell->reconcile())
      self->quit(crash_error("too many restarts"));
  };
  self->set_down_handler([self, reconcile](caf::down_msg& m) {
    if (self->state.shell->on_down(m))
      reconcile();
  });
  child_spec spec;
  spec.rule.id = "child";
  spec.make = [self] { return caf::actor_cast<caf::actor>(self->system().spawn(child)); };
  s.shell->add(std::move(spec));
  reconcile();
  return {[self](where_query&) {
            auto any = self->state.shell->handle("child");
            return where_reply{{}, any ? caf::actor_cast<child_actor>(any) : child_actor{}};
          },
          [reconcile](supervise_tick&) { reconcile(); },
          [self](stop_overdue& m) { self->state.shell->on_overdue(m); }};
}

struct crasher_state {
  crasher_state() = default; // or CAF would try to make it from the actor
  boss_actor boss;
  std::shared_ptr<skipping_clock> clock;
  trial_settings settings;
  child_actor old;
  stopwatch_clock::time_point since;
  all_times times;
  caf::typed_response_promise<all_times> promise;
  static inline const char* name = "crasher";
};

using crasher_pointer = crasher_impl::stateful_pointer<crasher_state>;

void ask_for_another(crasher_pointer self);

void answered(crasher_pointer self) {
  auto& s = self->state;
  constexpr double micro = 1e6;
  s.times.us.push_back(seconds_since(s.since) * micro);
  if (s.times.us.size() == s.settings.crashes) {
    s.promise.deliver(std::move(s.times));
    return;
  }
  if (s.settings.pause > milliseconds{0})
    self->delayed_send(self, s.settings.pause, next_crash{});
  else
    self->send(self, next_crash{});
}

void ask_for_another(crasher_pointer self) {
  auto& s = self->state;
  self->request(s.boss, caf::infinite, where_query{}).then([self](where_reply& r) {
    auto& st = self->state;
    if (!r.child || r.child == st.old)
      return ask_for_another(self);
    self->request(r.child, caf::infinite, question{}).then([self](int) { answered(self); });
  });
}

void crash(crasher_pointer self) {
  auto& s = self->state;
  s.clock->skip(2 * limits::restart_period);
  self->request(s.boss, caf::infinite, where_query{}).then([self](where_reply& r) {
    auto& st = self->state;
    st.old = r.child;
    self->request(st.old, caf::infinite, question{}).then([self](int) {
      auto& st2 = self->state;
      st2.since = stopwatch_clock::now();
      if (st2.settings.kill)
        self->send_exit(st2.old, caf::exit_reason::kill);
      else
        self->send(st2.old, end_badly{});
      ask_for_another(self);
    });
  });
}

crasher_impl::behavior_type crasher(crasher_pointer self, boss_actor boss,
                                    std::shared_ptr<skipping_clock> clock,
                                    trial_settings settings) {
  install_handlers(self, "crasher");
  auto& s = self->state;
  s.boss = std::move(boss);
  s.clock = std::move(clock);
  s.settings = settings;
  return {[self](begin&) {
            self->state.promise = self->make_response_promise<all_times>();
            self->send(self, next_crash{});
            return self->state.promise;
          },
          [self](next_crash&) { crash(self); }};
}

} // namespace

result<std::vector<double>> crash_and_answer_us(const trial_settings& settings) {
  // Every crash would write a line: Erlang's logger is off in its benchmark, too.
  spdlog::set_level(spdlog::level::off);
  caf::actor_system_config c;
  configure_actors(c);
  c.set("scheduler.max-threads", static_cast<std::int64_t>(settings.threads));
  caf::actor_system system(c);
  auto clock = std::make_shared<skipping_clock>();
  const boss_actor supervisor = system.spawn(boss, clock);
  const crasher_actor crashes = system.spawn(crasher, supervisor, clock, settings);
  result<std::vector<double>> outcome = fail(errc::bug, "no answer");
  {
    caf::scoped_actor me(system);
    me->request(crashes, longest_trials, begin{})
        .receive([&](all_times& t) { outcome = std::move(t.us); },
                 [&](caf::error& e) { outcome = fail(errc::timed_out, text_of(e)); });
    me->send_exit(crashes, caf::exit_reason::user_shutdown);
    me->send_exit(supervisor, caf::exit_reason::user_shutdown);
  }
  return outcome;
}

} // namespace boyd::bench
