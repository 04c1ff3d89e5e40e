#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/ports/process_runner.hpp"
#include "messages/message.hpp"

#include <caf/actor_addr.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boyd {

/// Faults on the way to a program and back.
struct program_points {
  faults::point start;
  faults::process_points events;
};

/// Senses and wake checks.
inline constexpr program_points helper_points{faults::point("probe.start"),
                                              faults::probe_processes};
/// Programs that agents, or their tools, run.
inline constexpr program_points run_points{faults::point("processes.start"),
                                           faults::executor_processes};

/// One program to run.
struct program_order {
  process_spec spec;
  milliseconds timeout{0};
  std::size_t output_bytes = 0; ///< that are kept of its output
  bool merges = false;          ///< its stderr is part of its output, too
  /// From SIGTERM at the end of its time to SIGKILL; 0: it is killed at once.
  milliseconds grace = limits::term_grace;
  std::optional<program_points> points{};
};

/// What a program left behind.
struct program_outcome {
  std::string output;      ///< capped; says in a line of its own what is missing
  std::uint64_t total = 0; ///< bytes that it had
  std::uint64_t cut = 0;   ///< bytes of it that are missing
  std::string diagnostics; ///< stderr, capped; empty when it is part of the output
  process_exit exit;       ///< also of a program that could not be started
  bool timed_out = false;
  milliseconds timeout{0};
};

/// Why the outcome cannot be used, in one line; empty: it can.
std::string problem_of(const program_outcome& outcome);

/// Program `number` of the receiver has ended.
struct program_ended : message {
  std::uint64_t number = 0;
  process_exit exit;
};

/// Program `number` of the receiver is to be looked at.
struct program_look : message {
  std::uint64_t number = 0;
};

/// A program that runs for its owner, an actor: its output, its time, its end. It is killed with
/// this object. Does not block. One thread: the owner's.
class program {
 public:
  /// Called once, on the runner's thread, or by the constructor for one that cannot be started;
  /// must not block. The owner then takes outcome().
  using on_end = std::function<void(const process_exit&)>;

  /// Sends program_ended to the owner, if it is still there.
  static on_end tells(const caf::actor_addr& owner, std::uint64_t number);

  program(std::shared_ptr<process_runner> processes, program_order order, steady_time now,
          on_end ended);
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Ends a program whose time is over. Returns when to look again; an error when there is nothing
  /// to wait for any more: it does not end (`timed_out`), or its end was not reported (`io_error`).
  result<milliseconds> look(steady_time now);
  void kill();
  /// After its end.
  program_outcome outcome(process_exit exit);

 private:
  struct output;
  enum class step : std::uint8_t { running, terminated, killed };

  std::shared_ptr<process_runner> processes_;
  std::shared_ptr<output> output_;
  std::optional<process_handle> handle_; ///< while it runs
  milliseconds timeout_;
  milliseconds grace_;
  step step_ = step::running;
  steady_time due_;                       ///< the next step
  std::optional<steady_time> unreported_; ///< ended, as its runner says, since then
};

} // namespace boyd
