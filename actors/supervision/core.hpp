#pragma once

#include "actors/supervision/restart.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace boyd {

/// When a child that ended is started again (OTP's words).
enum class restart_kind : std::uint8_t {
  permanent, ///< always
  transient, ///< only after a failure
  temporary, ///< never
};

/// A child as data, without its factory.
struct child_rule {
  std::string id;
  /// Earlier siblings whose handles it holds: when one of them is restarted, so is this one
  /// (rest_for_one, narrowed to those that really depend). While one of them is parked, or has
  /// ended for good, it runs without: its handle is null or dead, and requests to it fail at once.
  std::vector<std::string> depends_on;
  restart_kind restart = restart_kind::permanent;
  milliseconds stop_grace = 5s;
  /// Its own limit; nothing: a vital one has only that of the subtree, another one the standard
  /// one.
  std::optional<restart_intensity> intensity{};
  /// The others cannot do their work without it: exhausted, it escalates. Else it is parked, and
  /// its failures count for nobody else.
  bool vital = true;
  /// Of the children of one group the last one that is not parked is vital; empty: no group.
  std::string group{};
};

/// What a supervisor must do now.
struct supervision_actions {
  std::vector<std::string> stop;      ///< in this order (reverse of start)
  std::vector<std::string> start;     ///< in this order
  std::optional<steady_time> wake_at; ///< look again then
  bool escalate = false;              ///< the intensity is spent
  std::string reason;                 ///< of the escalation
};

/// One child as the supervisor sees it.
struct child_view {
  std::string id;
  std::string state; ///< running | stopping | restarting | parked | ended | stopped
  int restarts = 0;  ///< for failures of its own
  std::string last_error;
  std::string reason{}; ///< why it is parked
  int renewals = 0;     ///< started anew without one: with a sibling, or as ordered
};

/// The decisions of a supervisor: level-triggered, so that any order of deaths, stops and starts
/// converges on "everything wanted runs, and nobody holds a dead sibling's handle". CAF-free.
class supervisor_core {
 public:
  supervisor_core(std::vector<child_rule> rules, restart_intensity intensity);

  /// Adds a child after the others, or replaces the rule of one with the same id.
  void add(child_rule rule);
  /// The child is not wanted any more; it is stopped by the next `reconcile`.
  void remove(const std::string& id);
  /// The child is to be stopped and started anew, or, when it waits for its restart or has ended,
  /// started at once; does not count as a failure. A parked one stays so. False: nothing comes of
  /// it that does not come anyway.
  bool renew(const std::string& id);
  /// A parked child is wanted again, its failures forgotten; false: it is not parked.
  bool unpark(const std::string& id);

  /// `id` runs now.
  void started(const std::string& id);
  /// The factory of `id` failed.
  void start_failed(const std::string& id, const std::string& why, steady_time now, double unit);
  /// `id` is gone. `failure`: it did not end by itself in peace.
  void down(const std::string& id, bool failure, const std::string& why, steady_time now,
            double unit);
  /// `id` is gone since it has itself spent the restarts of what it supervises: it escalates or is
  /// parked at once.
  void gave_up(const std::string& id, const std::string& why, steady_time now);
  /// An ordered end is near: until `begin_shutdown`, `reconcile` starts nothing, stops nothing and
  /// does not escalate, so that what lives can finish its work. A vital part that fails meanwhile
  /// is gone for good: `given_up` tells.
  void hold();
  /// No restarts any more: `reconcile` stops everything in reverse order, one dependency level
  /// after the other.
  void begin_shutdown();

  /// What must be done now; call after every event and at `wake_at`.
  supervision_actions reconcile(steady_time now);

  bool all_stopped() const;
  /// Why it is parked; null: it is not.
  const std::string* parked(const std::string& id) const;
  /// The part for which restarts are spent, or which nothing starts anew, and why; empty: none.
  const std::string& given_up() const { return exhausted_by_; }
  /// Those that still run although the latest `reconcile` wants them gone or started anew.
  std::set<std::string> changing() const;
  milliseconds stop_grace(const std::string& id) const;
  /// The part whose end or restart has a living child started anew; itself when that was ordered.
  /// Empty: it is not started anew.
  std::string started_anew_with(const std::string& id) const;
  std::vector<child_view> view() const;

 private:
  struct child {
    child_rule rule;
    bool alive = false;
    bool stopping = false;
    bool wanted = true;
    bool ended = false; ///< as its rule says, it is not started again
    bool renewing = false;
    bool stale = false;  ///< unwanted, or holds the handle of a sibling that is gone
    std::string because; ///< that sibling
    bool parked = false;
    std::string reason; ///< why it is parked
    std::deque<steady_time> failures;
    steady_time restart_at{};
    int restarts = 0;
    int renewals = 0;
    std::string last_error;
    restart_backoff backoff;
  };

  child* find(const std::string& id);
  const child* find(const std::string& id) const;
  void failed(child& c, const std::string& why, steady_time now, double unit);
  void exhaust(child& c, const std::string& why, std::string parked_because);
  bool is_last_of_group(const child& c) const;
  bool has_living_dependents(const child& c) const;
  static void end(child& c);
  static bool is_absent(const child& c);
  void mark_stale();

  std::vector<child> children_;
  restart_intensity intensity_;
  std::deque<steady_time> failures_;
  bool exhausted_ = false;
  std::string exhausted_by_;
  bool holding_ = false;
  bool shutting_down_ = false;
};

} // namespace boyd
