#pragma once

#include "../unique_fd.hpp"
#include "boyd/ports/process_runner.hpp"
#include "process_input.hpp"
#include "process_wire.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace boyd::adapters {

/// The descriptors of a process as the runner numbers them.
enum slot : std::uint64_t { slot_in, slot_out, slot_err, slot_own };

/// What the runner knows about one process that has not been reported as ended.
struct process_job {
  process_events events;
  std::string program; ///< for messages
  std::string directory;
  bool limited = false;   ///< has limits of its own, or a sandbox
  bool host_lost = false; ///< as in process_exit
  job_input input;
  unique_fd pipes[3]; ///< our ends, by slot
  bool sent = false;
  std::optional<wire::reply> end;
  std::chrono::steady_clock::time_point drain_by{};
};

/// What is asked of the runner's thread.
struct process_command {
  enum class kind_t : std::uint8_t { start, signal, write, close_input };
  kind_t kind = kind_t::start;
  process_handle handle = 0;
  int signal = 0;
  process_spec spec;
  process_events events;
  std::string bytes; ///< to write
};

/// False when `spec` cannot be handed to execve: no program, a NUL byte, a relative directory.
bool is_startable(const process_spec& spec);

/// A memfd with the payload of a spawn request; -1 and errno when it cannot be made. `mark` is the
/// value of BOYD_RUN.
unique_fd make_payload(const process_spec& spec, const std::string& mark);

/// What on_exit says about `r`.
process_exit exit_of(const process_job& job, const wire::reply& r);

/// The text of an errno, the same in every locale.
std::string errno_text(int error_number);

} // namespace boyd::adapters
