#pragma once

#include "../arguments.hpp"
#include "../client.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What commands share that ask for a cycle and wait for its end.
namespace boyd::app {

/// How much later than the record the last event may come.
inline constexpr milliseconds last_event_limit = 2s;

/// What the gate says while a node drains (actors/kernel/admission.cpp).
inline constexpr const char* shutting_down = "the node is shutting down";

/// One line per event of one cycle on standard error; what its runs do and how long it takes is on
/// a live line where there is a terminal, which has no lines at all of a cycle that is over within
/// a second. Events of others are held back: it may not be known yet that theirs is the next cycle
/// to be shown. Threads: any.
class progress {
 public:
  /// What a run of the cycle has written.
  struct output {
    std::string dispatch_id;
    bool is_error = false; ///< its standard error
    std::string text;
  };

  /// `on_output` hears what the cycle's runs write, in order; empty: that is not shown.
  explicit progress(const arguments& args, std::function<void(const output&)> on_output = {})
      : terminal_(terminal_of_stderr(args)), is_quiet_(args.quiet || args.json),
        on_output_(std::move(on_output)) {}

  /// What `wait` returns; the live line is there until then.
  template <class Wait>
  auto waits_for(const Wait& wait) {
    begin_waiting();
    auto end = wait();
    end_waiting();
    return end;
  }

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
  void begin_waiting();
  void end_waiting();
  void show(const json& event);
  /// At once, or, of the first second on a terminal, with the first line behind it.
  void show_line(const std::string& phase, const std::string& text);
  void print_line(const std::string& text);
  void note(const std::string& phase, const std::string& agent, const std::string& said);
  std::string what_is_waited_for() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  const terminal terminal_;
  const bool is_quiet_;
  const live_line::time begun_ = std::chrono::steady_clock::now();
  std::optional<live_line> line_;
  std::map<std::string, std::string> running_; ///< what each agent under way does
  std::string newest_;                         ///< the agent of whom there was news last
  std::string phase_;                          ///< what the cycle does, while no agent runs
  std::function<void(const output&)> on_output_;
  std::string cycle_id_;
  std::deque<json> early_;
  std::vector<std::string> held_; ///< lines of the first second
  bool ended_ = false;
};

/// The part that was asked is being started anew, or cannot answer for a moment.
bool is_passing(const error& e);

/// The record of the cycle, when it is written. `cancelled`: this command was interrupted.
result<std::string> await_record(client& c, const std::string& id, const std::string& kernel);

/// The row of a dispatch, when it has ended. `cancelled`: this command was interrupted.
result<json> await_row(client& c, const std::string& id);

/// Why this agent cannot begin now, and what to do: `locked` when it is paused, or its newest run
/// waits or runs. Nothing where that cannot be asked: the trigger says why.
std::optional<error> what_holds(client& c, const std::string& agent, const std::string& kernel);

/// Why a cycle did not run this agent: as above, else the reason of its decision.
error why_not_run(client& c, const json& cycle, const std::string& agent, const std::string& kernel,
                  const std::string& cycle_id);

/// Tells that the cycle was not admitted, from the trigger's answer; returns the exit code.
int report_refusal(const json& answer, const arguments& args);

/// Tells that the command was interrupted and the cycle was not; returns the exit code.
int report_interruption(const client& c, const std::string& id);

} // namespace boyd::app
