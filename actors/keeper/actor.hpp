#pragma once

#include "actors/keeper/core.hpp"
#include "actors/supervision/restart.hpp"
#include "actors/support/handlers.hpp"
#include "actors/support/past_faults.hpp"
#include "boyd/core/long_work.hpp"
#include "boyd/core/restart_log.hpp"
#include "boyd/core/worker_roll.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "messages/health.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/replies_to.hpp>
#include <caf/send.hpp>
#include <caf/spawn_options.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// The blocking side of a keeper: lives in the worker, made at its start and gone with it. It may
/// block, but every call it makes carries its own limit. It must not move from a job's request:
/// the batch is repeated when the worker dies.
template <class Request, class Reply>
class performer {
 public:
  virtual ~performer() = default;

  /// Fills in every job's reply; called from the worker's thread.
  virtual void perform(std::vector<job<Request, Reply>>& batch) = 0;

  /// How the outside world is doing; sent to the keeper after every batch and probe.
  virtual part_health health() = 0;

  /// What may wait until the answers of a batch are out.
  virtual void tidy() {}

  /// Background work and recovery when nothing is asked: about every second while health() is not
  /// ok, rarely while it is.
  virtual void probe() {}
};

template <class Request, class Reply>
using performer_factory = std::function<std::unique_ptr<performer<Request, Reply>>()>;

/// Keeper to worker: do this. An empty batch is a probe.
template <class Request, class Reply>
struct run_batch : message {
  std::uint64_t sequence = 0;
  std::shared_ptr<std::vector<job<Request, Reply>>> batch;
};

/// Worker to keeper: done; sequence 0 answers a probe.
struct batch_done : message {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  part_health health;
};

/// The keeper's own clock; one of an earlier generation was replaced by a sooner one.
struct keeper_tick : message {
  std::uint64_t generation = 0;
};

/// Time to start a worker again.
struct restart_worker : message {
  std::uint64_t incarnation = 0;
};

/// A keeper's own messages on top of its public interface.
template <class Actor>
using with_keeper = typename Actor::template extend<
    // The worker is through with a batch or probe.
    caf::reacts_to<batch_done>,
    // The supervisor: do you still answer, and your worker?
    caf::replies_to<ping>::with<pong>,
    // Time to look after the worker.
    caf::reacts_to<keeper_tick>,
    // The back-off is over.
    caf::reacts_to<restart_worker>>;

using batch_listener_actor = caf::typed_actor<caf::reacts_to<batch_done>>;

template <class Request, class Reply>
using worker_actor = caf::typed_actor<caf::reacts_to<run_batch<Request, Reply>>>;

template <class Request, class Reply>
struct worker_state {
  std::shared_ptr<void> on_the_roll; ///< until the thread's last work is done
  std::unique_ptr<performer<Request, Reply>> doer;
  std::uint64_t performed = 0; ///< the newest batch, by its sequence number
  static inline const char* name = "worker";
};

/// The disposable worker: detached in production, inline in simulation (the spawn site chooses).
template <class Request, class Reply>
typename worker_actor<Request, Reply>::behavior_type keeper_worker(
    typename worker_actor<Request, Reply>::template stateful_pointer<worker_state<Request, Reply>>
        self,
    batch_listener_actor keeper, std::uint64_t incarnation, performer_factory<Request, Reply> make,
    std::shared_ptr<void> on_the_roll) {
  install_handlers(self, "worker");
  self->state.on_the_roll = std::move(on_the_roll);
  return {[self, keeper, incarnation, make](run_batch<Request, Reply>& order) {
    auto& doer = self->state.doer;
    auto& performed = self->state.performed;
    // A keeper that hears nothing says it again: each batch is performed once.
    if (order.batch && order.sequence < performed)
      return;
    if (!doer)
      doer = make();
    if (!order.batch) {
      doer->probe();
    } else if (order.sequence != performed) {
      doer->perform(*order.batch);
      performed = order.sequence;
    }
    send_past_faults(self, keeper, faults::point("keeper.done"),
                     batch_done{{}, incarnation, order.sequence, doer->health()});
    if (order.batch)
      doer->tidy();
  }};
}

/// A trouble that goes on is told of again, when its reason has changed, after this time at least.
inline constexpr milliseconds told_again = 60s;

/// A worker that has not said for so long that it is done is told again, at the keeper's next look.
inline constexpr milliseconds order_patience = 5s;

/// What a keeper is made of.
template <class Request, class Reply>
struct keeper_parts {
  const char* name = "keeper";
  performer_factory<Request, Reply> make_performer;
  std::shared_ptr<clock_port> clock;
  std::shared_ptr<entropy> random;
  std::shared_ptr<restart_log> restarts; ///< hears of every death of the worker; null: nobody does
  std::shared_ptr<worker_roll> roll;     ///< has the worker while it lives; null: nobody has
  /// A new worker does not wait until the one before it, of this keeper or of an earlier one of its
  /// name, has ended. Two at once would share a file that each takes for its own.
  bool may_overlap = false;
  std::shared_ptr<boyd::long_work> long_work{}; ///< of the worker, as it says; null: never
  /// Deaths of the worker beyond it end the keeper, within its period or, however far apart,
  /// without work done in between: its supervisor then parks it, or gives up.
  restart_intensity worker_intensity{};
  bool detached = true; ///< false in simulation: the worker runs inline
  keeper_limits limits;
  milliseconds probe_interval = 1s;       ///< while the worker is not well
  milliseconds idle_probe_interval = 30s; ///< while it is
  /// A batch with such a request shows, once performed, that the worker can do its work; null: each
  /// batch does. A probe never does.
  std::function<bool(const Request&)> is_proof{};
};

/// The shell of every keeper: owns the queue, the worker's life and its health. An actor embeds it
/// in its state and forwards its messages. One thread: the actor's.
template <class Self, class Request, class Reply>
class keeper {
 public:
  using promise = caf::typed_response_promise<result<Reply>>;

  keeper(Self* self, keeper_parts<Request, Reply> parts)
      : self_(self), parts_(std::move(parts)), core_(parts_.limits) {}

  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

  /// Answers everybody who still waits (FAULTS 3) and ends the worker.
  ~keeper() {
    if (flying_ && worker_busy() >= order_patience)
      spdlog::warn("{}: ends while its worker has been busy with one batch for {}; the result of "
                   "the batch is lost",
                   parts_.name, format_duration(worker_busy()));
    for (auto& p : core_.drain())
      p.deliver(result<Reply>(fail(errc::actor_down, "the part is stopping", parts_.name)));
    if (worker_)
      caf::anon_send<caf::message_priority::high>(
          caf::actor_cast<caf::actor>(worker_),
          caf::exit_msg{self_->address(), caf::exit_reason::user_shutdown});
  }

  /// Called once from the behaviour: starts the worker and the clock. `other_down` hears of DOWNs
  /// that are not the worker's.
  void start(std::function<void(const caf::down_msg&)> other_down = {}) {
    self_->set_down_handler([this, other_down](caf::down_msg& m) {
      if (!on_down(m) && other_down)
        other_down(m);
    });
    start_worker();
  }

  /// Takes a request in.
  promise accept(Request request, bool essential = false) {
    auto p = self_->template make_response_promise<result<Reply>>();
    enter(std::move(request), p, essential);
    pump();
    return p;
  }

  /// The worker's word on a batch or probe. `look(job)` sees every answered job before its reply
  /// goes out: for keepers that tell others.
  template <class Look>
  void on_done(batch_done& m, Look look) {
    if (m.incarnation != incarnation_)
      return;
    note(m.health);
    if (m.sequence == 0) {
      probing_ = false;
      busy_since_ = flying_ ? std::optional(parts_.clock->steady()) : std::nullopt;
      return;
    }
    if (!flying_ || m.sequence != core_.sequence())
      return; // said again
    busy_since_.reset();
    policy_.succeeded(parts_.clock->steady());
    if (proves_work(*flying_))
      fruitless_deaths_ = 0;
    // Held to the end: to free a large batch takes as long as the worker's next one may begin
    // sooner.
    const auto batch = std::move(flying_);
    flying_.reset();
    if (batch)
      for (const auto& j : *batch)
        look(j);
    auto answers = core_.complete(m.sequence);
    // The worker first: it is what everybody waits for.
    pump();
    for (auto& a : answers)
      a.ticket.deliver(std::move(a.reply));
  }

  void on_tick(const keeper_tick& m) {
    if (m.generation != tick_generation_)
      return;
    repeat_order();
    probe();
    pump();
    tick_in(health_.ok ? parts_.idle_probe_interval : parts_.probe_interval);
  }

  void on_restart(const restart_worker& m) {
    if (m.incarnation == incarnation_ && !worker_)
      start_worker();
  }

  /// How the part is, as far as it is known. Whoever asks gets a probe made for the next asker: a
  /// part that is idle and well looks after itself too rarely for somebody who watches.
  result<part_health> health() {
    repeat_order();
    if (parts_.clock->steady() - probed_at_ >= parts_.probe_interval)
      probe();
    part_health h = health_;
    h.worker_restarts = restarts_;
    const auto work = long_work_of_worker();
    if (work) {
      h.ok = false;
      h.reason = work->what + ", for " + format_duration(parts_.clock->steady() - work->since);
    } else if (waits_for_former_) {
      h.ok = false;
      h.reason = "waiting for its previous worker, which is still busy";
    } else if (!worker_) {
      h.ok = false;
      h.reason = "worker is being restarted: " + h.last_error;
    } else if (const auto busy = worker_busy(); busy >= limits::worker_patience) {
      h.ok = false;
      h.reason = "its worker has been busy with one batch for " + format_duration(busy);
    }
    return h;
  }

  /// The answer to a ping.
  pong pulse() {
    repeat_order();
    return {{}, worker_busy(), {}};
  }

  /// Whether the next request has a batch of its own.
  bool is_idle() const { return !core_.busy() && core_.waiting() == 0; }

 private:
  void enter(Request request, promise asker, bool essential) {
    // What is essential is never refused; results have their fence, whenever they come.
    if constexpr (requires { request.until; }) {
      if (!essential && self_->clock().now() >= request.until) {
        asker.deliver(
            result<Reply>(fail(errc::timed_out, "the request arrived after its caller had given up",
                               parts_.name, "try again")));
        return;
      }
    }
    if (!core_.accept(std::move(request), asker, essential))
      asker.deliver(result<Reply>(fail(errc::overloaded, "too many requests are waiting",
                                       parts_.name, "try again in a second")));
  }

  void start_worker() {
    auto listed = enter_roll();
    if (parts_.roll && !listed)
      return wait_for_former();
    waits_for_former_ = false;
    ++incarnation_;
    probing_ = false;
    auto me = batch_listener_actor(self_);
    auto* f = &keeper_worker<Request, Reply>;
    worker_ = parts_.detached
                  ? self_->template spawn<caf::detached>(f, me, incarnation_, parts_.make_performer,
                                                         std::move(listed))
                  : self_->spawn(f, me, incarnation_, parts_.make_performer, std::move(listed));
    // Not of high priority: its end must not overtake its word that a batch is done, which would
    // then be performed again.
    self_->monitor(worker_);
    pump();
    tick_in(parts_.probe_interval);
  }

  std::shared_ptr<void> enter_roll() {
    if (!parts_.roll)
      return nullptr;
    if (parts_.may_overlap)
      return parts_.roll->enter(parts_.name);
    return parts_.roll->enter_alone(
        parts_.name, [keeper = self_->address(), incarnation = incarnation_] {
          if (auto living = caf::actor_cast<caf::strong_actor_ptr>(keeper))
            caf::anon_send(caf::actor_cast<caf::actor>(std::move(living)),
                           restart_worker{{}, incarnation});
        });
  }

  /// It counts as a worker that does not come back, so that the watchdog sees one that hangs.
  void wait_for_former() {
    busy_since_ = busy_since_.value_or(parts_.clock->steady());
    if (!std::exchange(waits_for_former_, true))
      spdlog::warn("{}: its previous worker is still busy; a new one starts when it ends",
                   parts_.name);
  }

  void probe() {
    if (core_.busy() || probing_ || !worker_ || core_.waiting() > 0)
      return;
    probing_ = true;
    probed_at_ = parts_.clock->steady();
    busy_since_ = busy_since_.value_or(probed_at_);
    order(0, nullptr);
  }

  void order(std::uint64_t sequence, std::shared_ptr<std::vector<job<Request, Reply>>> batch) {
    ordered_at_ = parts_.clock->steady();
    send_past_faults(self_, worker_, faults::point("keeper.batch"),
                     run_batch<Request, Reply>{{}, sequence, std::move(batch)});
  }

  /// The order, or the word that it was done, may have been lost.
  void repeat_order() {
    if (!worker_ || parts_.clock->steady() - ordered_at_ < order_patience)
      return;
    if (flying_)
      order(core_.sequence(), flying_);
    else if (probing_)
      order(0, nullptr);
  }

  std::optional<long_work::report> long_work_of_worker() const {
    return parts_.long_work ? parts_.long_work->read() : std::nullopt;
  }

  milliseconds worker_busy() const {
    if (const auto work = long_work_of_worker();
        work && parts_.clock->steady() - work->since < limits::long_work)
      return milliseconds{0};
    return busy_since_ ? parts_.clock->steady() - *busy_since_ : milliseconds{0};
  }

  void tick_in(milliseconds delay) {
    self_->delayed_send(self_, delay, keeper_tick{{}, ++tick_generation_});
  }

  bool on_down(caf::down_msg& m) {
    if (!worker_ || m.source != worker_.address())
      return false;
    worker_ = nullptr;
    if (parts_.long_work)
      parts_.long_work->end();
    flying_.reset();
    // Until one has done something, there is none that works.
    const auto now = parts_.clock->steady();
    busy_since_ = busy_since_.value_or(now);
    ++restarts_;
    health_.last_error = text_of(m.reason);
    spdlog::error("{}: worker ended: {}", parts_.name, health_.last_error);
    if (parts_.restarts)
      parts_.restarts->note(
          {std::string(parts_.name) + " worker", health_.last_error, parts_.clock->now()});
    for (auto& a : core_.worker_died(health_.last_error))
      a.ticket.deliver(std::move(a.reply));
    ++fruitless_deaths_;
    if (spend_restart(deaths_, now, parts_.worker_intensity))
      give_up(std::to_string(deaths_.size()) + " times within " +
              format_duration(parts_.worker_intensity.period));
    else if (fruitless_deaths_ > parts_.worker_intensity.restarts)
      give_up(std::to_string(fruitless_deaths_) + " times without doing any work");
    else
      self_->delayed_send(self_, policy_.failed(now, parts_.random->unit()),
                          restart_worker{{}, incarnation_});
    return true;
  }

  void give_up(const std::string& how_often) {
    self_->quit(exhausted_error("its worker failed " + how_often + ": " + health_.last_error));
  }

  bool proves_work(const std::vector<job<Request, Reply>>& batch) const {
    return !parts_.is_proof ||
           std::ranges::any_of(batch, [&](const auto& j) { return parts_.is_proof(j.request); });
  }

  void note(const part_health& h) {
    const std::string kept = h.last_error.empty() ? health_.last_error : h.last_error;
    tell(h);
    if (health_.ok && !h.ok)
      tick_in(parts_.probe_interval);
    health_ = h;
    health_.last_error = h.ok ? kept : h.reason;
  }

  /// One line when a trouble begins and one when it ends. What is tried again each second may fail
  /// in ever other words: those are told rarely.
  void tell(const part_health& h) {
    const auto now = parts_.clock->steady();
    if (h.ok) {
      if (!health_.ok)
        spdlog::info("{}: recovered", parts_.name);
      return;
    }
    if (!health_.ok && (h.reason == told_reason_ || now - told_at_ < told_again))
      return;
    spdlog::warn("{}: degraded: {}", parts_.name, h.reason);
    told_reason_ = h.reason;
    told_at_ = now;
  }

  void pump() {
    if (!worker_)
      return;
    if (auto batch = core_.next_batch()) {
      flying_ = batch;
      busy_since_ = busy_since_.value_or(parts_.clock->steady());
      order(core_.sequence(), std::move(batch));
    }
  }

  Self* self_;
  keeper_parts<Request, Reply> parts_;
  keeper_core<Request, Reply, promise> core_;
  worker_actor<Request, Reply> worker_;
  std::shared_ptr<std::vector<job<Request, Reply>>> flying_;
  std::uint64_t incarnation_ = 0;
  int restarts_ = 0;
  bool probing_ = false;
  bool waits_for_former_ = false;
  steady_time probed_at_{};
  steady_time ordered_at_{};              ///< the newest batch or probe, or its repeat
  std::optional<steady_time> busy_since_; ///< there was something to do, and no worker has done it
  std::uint64_t tick_generation_ = 0;
  part_health health_;
  std::string told_reason_; ///< the newest that is in the log
  steady_time told_at_{};
  restart_backoff policy_;
  std::deque<steady_time> deaths_; ///< of workers, within their intensity
  /// Deaths of workers since one did its work. What is asked for seldom kills them seldom, too: of
  /// these no time makes forget.
  int fruitless_deaths_ = 0;
};

} // namespace boyd
