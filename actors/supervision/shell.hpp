#pragma once

#include "actors/supervision/core.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/restart_log.hpp"
#include "boyd/core/result.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "messages/health.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/replies_to.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// A child: its rule, and how to make it. The factory runs in the supervisor's thread, must not
/// block, and injects only handles that the supervisor already has; it may throw.
struct child_spec {
  child_rule rule;
  std::function<caf::actor()> make;
};

/// Every actor, as its supervisor sees it: install_handlers answers a ping.
using pinged_actor = caf::typed_actor<caf::replies_to<ping>::with<pong>>;

/// Time for a supervisor to look again.
struct supervise_tick : message {};

/// A child did not stop within its grace.
struct stop_overdue : message {
  std::string id;
  std::uint64_t incarnation = 0;
};

/// What every supervisor shares: starts children in order, monitors them, restarts the group that
/// depends on a dead one, stops in reverse. An actor embeds it and forwards `supervise_tick`,
/// `stop_overdue`,
/// its DOWN messages and its children's `pong`. One thread: the actor's.
template <class Self>
class supervisor_shell {
 public:
  supervisor_shell(Self* self, const char* name, std::shared_ptr<clock_port> clock,
                   std::shared_ptr<entropy> random, restart_intensity intensity)
      : self_(self), name_(name), clock_(std::move(clock)), random_(std::move(random)),
        core_({}, intensity) {}

  supervisor_shell(const supervisor_shell&) = delete;
  supervisor_shell& operator=(const supervisor_shell&) = delete;

  /// Whatever still lives when the supervisor ends is ended, too, last started first.
  ~supervisor_shell() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      if (auto& c = children_.at(*it); c.handle)
        caf::anon_send<caf::message_priority::high>(
            c.handle, caf::exit_msg{self_->address(), caf::exit_reason::kill});
  }

  /// Every restart of a child is noted there from now on.
  void record_in(std::shared_ptr<restart_log> log) { restarts_ = std::move(log); }

  /// Adds or replaces a child; it starts at the next `reconcile`.
  void add(child_spec spec) {
    core_.add(spec.rule);
    const auto id = spec.rule.id;
    if (children_.find(id) == children_.end())
      order_.push_back(id);
    children_[id].make = std::move(spec.make);
  }

  void remove(const std::string& id) { core_.remove(id); }

  /// Stops the child and starts it again by its present spec; not a failure. `why` goes on record.
  void renew(const std::string& id, const std::string& why) {
    if (core_.renew(id))
      note_restart(id, why);
  }

  /// What an operator wants of a child; the caller reconciles afterwards.
  result<actor_order_reply> obey(const actor_order& order) {
    const auto all = core_.view();
    const auto it = std::ranges::find(all, order.name, &child_view::id);
    if (it == all.end())
      return fail(errc::not_found, "no such part: " + order.name, {},
                  "list them with: boyd actors ls");
    if (held_ || shutting_down_ || it->state == "stopped")
      return fail(errc::refused, "the node is stopping and starts no part", order.name);
    if (order.verb == actor_verb::restart && it->state == "parked")
      return fail(errc::conflict, "the part is parked: " + it->reason, order.name,
                  "start it again with: boyd actors unpark " + order.name);
    const bool restarts = order.verb == actor_verb::restart;
    if (restarts)
      renew(order.name, "restarted by an operator");
    else if (core_.unpark(order.name))
      note_restart(order.name, "unparked by an operator");
    if (restarts || it->state == "parked")
      spdlog::info("{}: {} is {} by an operator", name_, order.name,
                   restarts ? "restarted" : "unparked");
    return actor_order_reply{{}, order.name, it->state};
  }

  /// Pings every living child once, past its mail; `interval`: until the next call. A message and
  /// no request: CAF gives high priority to those alone (tests/actor/contract_lifetime_test.cpp).
  void beat(milliseconds interval) {
    const auto scaled = [&](milliseconds limit) {
      return interval * limit.count() / limits::heartbeat.count();
    };
    interval_ = interval;
    patience_ = scaled(limits::heartbeat_patience);
    worker_patience_ = scaled(limits::worker_patience);
    for (auto& [id, c] : children_) {
      if (!c.handle)
        continue;
      tell_if_silent(id, c);
      if (c.pings++ == 0)
        c.pinged_at = clock_->steady();
      self_->template send<caf::message_priority::high>(caf::actor_cast<pinged_actor>(c.handle),
                                                        ping{});
    }
  }

  /// A child's answer to a ping.
  void on_pong(const caf::strong_actor_ptr& sender, pong& answer) {
    if (faults::lost("supervision.answer"))
      return;
    for (auto& [id, c] : children_) {
      if (!c.handle || !sender || c.handle.address() != sender)
        continue;
      c.pings = 0;
      answer.worker_busy = seen_busy(c.word.worker_busy, answer.worker_busy);
      c.word = std::move(answer);
      tell_if_silent(id, c);
      return;
    }
  }

  /// The children that do not answer, and whoever they say does not answer them.
  std::vector<silent_part> silent() const {
    std::vector<silent_part> all;
    for (const auto& [id, c] : children_) {
      if (!c.handle)
        continue;
      if (is_silent(c))
        all.push_back({id, is_mute(c) ? c.pings : 0, c.word.worker_busy});
      all.insert(all.end(), c.word.silent.begin(), c.word.silent.end());
    }
    return all;
  }

  /// Brings reality and wish together. Returns false when the intensity is spent: the caller
  /// must end itself with `escalation()`.
  bool reconcile() {
    // Each pass may start children that only become ready by it; bounded by the number of children.
    for (std::size_t pass = 0; pass <= children_.size() + 1; ++pass) {
      auto todo = core_.reconcile(clock_->steady());
      if (todo.escalate) {
        escalation_ = todo.reason;
        return false;
      }
      for (const auto& id : todo.stop)
        stop_child(id);
      for (const auto& id : todo.start)
        start_child(id);
      if (todo.wake_at)
        self_->delayed_send(self_, std::max(*todo.wake_at - clock_->steady(), milliseconds{1}),
                            supervise_tick{});
      if (todo.start.empty())
        break;
    }
    if (core_.changing().empty())
      note_renewals();
    return true;
  }

  /// A DOWN; false when it was none of the children's.
  bool on_down(caf::down_msg& m) {
    for (auto& [id, c] : children_) {
      if (!c.handle || c.handle.address() != m.source)
        continue;
      c.handle = nullptr;
      const bool failure =
          static_cast<bool>(m.reason) && m.reason != caf::exit_reason::user_shutdown;
      const auto why = text_of(m.reason);
      const auto with = core_.started_anew_with(id);
      if (!with.empty() && with != id) {
        spdlog::info("{}: {} is restarted together with {}", name_, id, with);
        renewed_with_[with].push_back(id);
      }
      if (failure) {
        spdlog::error("{}: {} ended: {}", name_, id, why);
        note_restart(id, why);
      }
      if (is_exhausted(m.reason))
        core_.gave_up(id, why, clock_->steady());
      else
        core_.down(id, failure, why, clock_->steady(), random_->unit());
      tell_if_parked(id);
      return true;
    }
    return false;
  }

  /// Kills a child that did not stop in time.
  void on_overdue(const stop_overdue& m) {
    auto it = children_.find(m.id);
    if (it == children_.end() || !it->second.handle || it->second.incarnation != m.incarnation)
      return;
    spdlog::warn("{}: {} did not stop in time and is killed", name_, m.id);
    caf::anon_send<caf::message_priority::high>(
        it->second.handle, caf::exit_msg{self_->address(), caf::exit_reason::kill});
  }

  /// Nothing is started (or stopped) any more, until `begin_shutdown`.
  void hold() {
    held_ = true;
    core_.hold();
  }

  void begin_shutdown() {
    shutting_down_ = true;
    core_.begin_shutdown();
  }
  bool shutting_down() const { return shutting_down_; }
  bool all_stopped() const { return core_.all_stopped(); }
  /// As supervisor_core's.
  std::set<std::string> changing() const { return core_.changing(); }
  const std::string& escalation() const { return escalation_; }
  const std::string& given_up() const { return core_.given_up(); }

  /// As the core sees them; who lives but does not answer is `silent`.
  std::vector<child_view> view() const {
    auto all = core_.view();
    for (auto& v : all) {
      const auto& c = children_.at(v.id);
      if (v.state != "running" || !is_silent(c))
        continue;
      v.state = "silent";
      v.reason = why_silent(c);
    }
    return all;
  }

  /// The living child, or null.
  caf::actor handle(const std::string& id) const {
    auto it = children_.find(id);
    return it == children_.end() ? caf::actor{} : it->second.handle;
  }

 private:
  struct child {
    std::function<caf::actor()> make;
    caf::actor handle;
    std::uint64_t incarnation = 0;
    int pings = 0;           ///< since its latest answer
    steady_time pinged_at{}; ///< the first of them
    pong word;               ///< the latest answer
    bool told_silent = false;
  };

  /// How long a worker is known to have been busy: from one answer to the next no more than an
  /// interval is added. A process or machine that stood still did not work meanwhile.
  milliseconds seen_busy(milliseconds before, milliseconds now) const {
    return std::min(now, (now > before ? before : milliseconds{0}) + interval_);
  }

  bool is_mute(const child& c) const {
    return c.pings > 0 && clock_->steady() - c.pinged_at >= patience_;
  }

  bool is_silent(const child& c) const {
    return is_mute(c) || c.word.worker_busy >= worker_patience_;
  }

  std::string why_silent(const child& c) const {
    return is_mute(c) ? "has not answered " + std::to_string(c.pings) + " pings"
                      : "its worker has been busy with one batch for " +
                            format_duration(c.word.worker_busy);
  }

  /// Logs each change once.
  void tell_if_silent(const std::string& id, child& c) {
    const bool silent = is_silent(c);
    if (std::exchange(c.told_silent, silent) == silent)
      return;
    if (silent)
      spdlog::error("{}: {} does not respond: {}", name_, id, why_silent(c));
    else
      spdlog::info("{}: {} answers again", name_, id);
  }

  void start_child(const std::string& id) {
    auto& c = children_.at(id);
    try {
      if (auto passed = faults::pass("supervision.start"); !passed)
        throw std::runtime_error(passed.error().what);
      c.handle = c.make();
      ++c.incarnation;
      c.pings = 0;
      c.word = {};
      c.told_silent = false;
      // Its end is not to wait behind the mail of who supervises it.
      self_->template monitor<caf::message_priority::high>(c.handle);
      core_.started(id);
    } catch (...) {
      const auto why = text_of(std::current_exception());
      spdlog::error("{}: {} could not be started: {}", name_, id, why);
      note_restart(id, "could not be started: " + why);
      core_.start_failed(id, why, clock_->steady(), random_->unit());
      tell_if_parked(id);
    }
  }

  void note_restart(const std::string& id, const std::string& why) const {
    if (restarts_ && !shutting_down_)
      restarts_->note({id, why, clock_->now()});
  }

  /// One event for all that were started anew with a part: ten would push the causes off the
  /// record.
  void note_renewals() {
    for (const auto& [with, ids] : std::exchange(renewed_with_, {}))
      note_restart(with, fmt::format("restarted together with it: {}", fmt::join(ids, ", ")));
  }

  void tell_if_parked(const std::string& id) const {
    if (const auto* reason = core_.parked(id))
      spdlog::critical("{}: {} is parked: {}; fix the cause, then run: boyd actors unpark {}",
                       name_, id, *reason, id);
  }

  void stop_child(const std::string& id) {
    auto& c = children_.at(id);
    if (!faults::lost("supervision.stop"))
      caf::anon_send<caf::message_priority::high>(
          c.handle, caf::exit_msg{self_->address(), caf::exit_reason::user_shutdown});
    self_->delayed_send(self_, core_.stop_grace(id), stop_overdue{{}, id, c.incarnation});
  }

  Self* self_;
  const char* name_;
  std::shared_ptr<clock_port> clock_;
  std::shared_ptr<entropy> random_;
  supervisor_core core_;
  std::map<std::string, child> children_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> renewed_with_; ///< not yet on record
  std::string escalation_;
  std::shared_ptr<restart_log> restarts_;
  milliseconds interval_ = limits::heartbeat;
  milliseconds patience_ = limits::heartbeat_patience;
  milliseconds worker_patience_ = limits::worker_patience;
  bool held_ = false;
  bool shutting_down_ = false;
};

} // namespace boyd
