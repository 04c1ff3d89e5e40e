#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::sim {

/// How a simulated program behaves.
struct sim_program {
  std::string output{}; ///< written to stdout when it starts
  std::string errors{}; ///< written to stderr when it starts
  int exit_code = 0;
  int exit_signal = 0;          ///< ends by this signal instead of a code
  milliseconds duration{0};     ///< from its start to its end
  milliseconds output_every{0}; ///< one more line "tick" this often; 0: never
  bool hang = false;            ///< never ends by itself
  bool ignore_term = false;     ///< only SIGKILL ends it
  bool unkillable = false;      ///< not even SIGKILL: stuck inside the kernel
  bool daemonise = false;       ///< holds the pipes: on_exit comes limits::term_grace later
  int start_errno = 0;          ///< cannot be executed
  /// Of a program with `input_stays`: what it writes to stdout for what it is given, at once.
  std::function<std::string(std::string_view)> answers{};
  bool ignore_close = false; ///< goes on when its stdin is closed, which ends it otherwise
};

/// A process runner under virtual time: nothing happens but in start() and step(). Callbacks are
/// delivered from step() alone, in the order of their time, then of their handle. Single-threaded.
class sim_process_runner final : public process_runner {
 public:
  explicit sim_process_runner(std::shared_ptr<const clock_port> clock);

  /// What argv[0] == `name` does. An undefined name cannot be executed (ENOENT).
  void define(const std::string& name, sim_program program);
  /// The same, decided at each start from the spec and the number of earlier starts of this name.
  void define(const std::string& name,
              std::function<sim_program(const process_spec&, std::size_t earlier)> decide);

  result<process_handle> start(process_spec spec, process_events events) override;
  result<void> write(process_handle handle, std::string_view bytes) override;
  void close_input(process_handle handle) override;
  void signal(process_handle handle, int signal) override;
  std::size_t running() const override { return processes_.size(); }
  bool runs(process_handle handle) const override { return processes_.contains(handle); }
  /// Those that have not ended, told or not.
  std::size_t alive() const;
  /// Whether it has not ended, told or not.
  bool alive(process_handle handle) const;

  /// The time of the next callback, if one will come without a further signal.
  std::optional<steady_time> next_event() const;
  /// Delivers everything that is due at `now`, at most `max_events`; returns how many callbacks.
  std::size_t step(steady_time now);
  /// The node dies: every process is gone, no callback is made.
  void crash();

  /// The next `n` starts fail with `error_number` (EAGAIN, EMFILE, …).
  void fail_next_starts(std::size_t n, int error_number);

  std::size_t started() const noexcept { return last_handle_; }
  std::size_t peak_running() const noexcept { return peak_; }
  /// Of every start so far, oldest first, at most `max_history`.
  const std::vector<process_spec>& history() const noexcept { return history_; }

  static constexpr std::size_t max_history = 100'000;
  static constexpr std::size_t max_events = 1'000'000;

 private:
  struct process {
    sim_program program;
    process_events events;
    steady_time started{};
    steady_time next_output{};
    std::optional<steady_time> ends;
    process_exit exit;
    bool greeted = false;
    bool reads = false;           ///< its stdin is open
    std::deque<std::string> said; ///< answers that are due
    steady_time said_at{};
  };

  steady_time due(const process& p) const;
  bool has_event(const process& p) const;
  void advance(process_handle handle, steady_time now);

  std::shared_ptr<const clock_port> clock_;
  std::map<std::string, std::function<sim_program(const process_spec&, std::size_t)>> programs_;
  std::map<std::string, std::size_t> starts_;
  std::map<process_handle, process> processes_;
  std::vector<process_spec> history_;
  process_handle last_handle_ = 0;
  std::size_t peak_ = 0;
  std::size_t failing_starts_ = 0;
  int failing_errno_ = 0;
};

} // namespace boyd::sim
