#pragma once

#include "../arguments.hpp"
#include "../client.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

/// What commands share that ask for a cycle and wait for its end.
namespace boyd::app {

/// How much later than the record the last event may come.
inline constexpr milliseconds last_event_limit = 2s;

/// What the gate says while a node drains (actors/kernel/admission.cpp).
inline constexpr const char* shutting_down = "the node is shutting down";

/// One line per event of one cycle on standard error. Events of others are held back: it may not be
/// known yet that theirs is the next cycle to be shown. Threads: any.
class progress {
 public:
  /// What a run of the cycle has written.
  struct output {
    std::string dispatch_id;
    bool is_error = false; ///< its standard error
    std::string text;
  };

  /// `on_output` hears what the cycle's runs write, in order; empty: that is not shown.
  explicit progress(terminal t, std::function<void(const output&)> on_output = {})
      : terminal_(t), on_output_(std::move(on_output)) {}

  /// An event as the control API sends it.
  void take(std::string_view line);

  /// From now on this cycle's events are shown, those that came already first.
  void follow(const std::string& cycle_id);

  /// A line that is about no event.
  void say(const std::string& text);

  /// Until the cycle's last event has been shown, at most `limit`: events come on a way of their
  /// own, and may be later than the cycle's record.
  void wait_for_end(milliseconds limit);

 private:
  void show(const json& event);

  std::mutex mutex_;
  std::condition_variable changed_;
  terminal terminal_;
  std::function<void(const output&)> on_output_;
  std::string cycle_id_;
  std::deque<json> early_;
  bool ended_ = false;
};

/// The part that was asked is being started anew, or cannot answer for a moment.
bool is_passing(const error& e);

/// The record of the cycle, when it is written. `cancelled`: this command was interrupted.
result<std::string> await_record(client& c, const std::string& id, const std::string& kernel);

/// Why a cycle did not run this agent: the reason of its decision.
error why_not_run(client& c, const json& cycle, const std::string& agent, const std::string& kernel,
                  const std::string& cycle_id);

/// Tells that the cycle was not admitted, from the trigger's answer; returns the exit code.
int report_refusal(const json& answer, const arguments& args);

/// Tells that the command was interrupted and the cycle was not; returns the exit code.
int report_interruption(const client& c, const std::string& id);

} // namespace boyd::app
