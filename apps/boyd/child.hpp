#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace boyd::app {

/// A program that a command runs for itself, its output in files. In a process group of its own: a
/// terminal's Ctrl-C reaches the command, which decides. Killed with its group by the destructor.
class child {
 public:
  struct output {
    std::string out; ///< paths; made or emptied
    std::string err;
  };

  /// `argv[0]` is looked for in PATH when it has no '/'. `not_found` when there is no such program.
  static result<child> start(std::vector<std::string> argv, const output& to);

  child(child&& other) noexcept;
  child& operator=(child&&) = delete;
  ~child();

  /// How a wait ended.
  enum class end : std::uint8_t { exited, timed_out, woken };
  /// Waits at most so long; `wake` is a descriptor whose readability ends the wait, too (-1: none).
  end wait(milliseconds limit, int wake) const;

  /// SIGKILL to the program alone (what it started sees its parent die), then waits for its end.
  /// Returns the exit code, or 128 + signal.
  int kill();
  /// The exit code, or 128 + signal, of a program that has exited; waits for it otherwise.
  int code();

 private:
  child(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}

  pid_t pid_ = -1;
  int descriptor_ = -1; ///< a pidfd
};

} // namespace boyd::app
