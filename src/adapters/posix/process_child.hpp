#pragma once

#include "process_wire.hpp"

#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace boyd::adapters {

/// What the host forks: the decoded payload of a spawn request.
struct child_plan {
  wire::payload_head limits;
  std::string directory;
  std::string within; ///< where the directory must lie; empty: anywhere
  std::vector<std::string> arguments;
  std::vector<std::string> environment; ///< NAME=value
  std::optional<sandbox_spec> sandbox;
};

/// Writes the payload of `plan`.
std::string encode_plan(const child_plan& plan);

/// False when the payload is not what encode_plan writes.
bool decode_plan(const std::string& payload, child_plan& plan);

/// What the child tells the host through its close-on-exec pipe when it cannot become the program.
struct child_failure {
  wire::spawn_step step = wire::spawn_step::exec;
  std::int32_t error_number = 0;
};

/// Turns a freshly forked child of the single-threaded host into the program: own process group,
/// death with its parent, default signals, the three descriptors and no other, limits, directory,
/// PATH of its own environment. Writes a child_failure to `failure_fd` when something fails;
/// bubblewrap tells of its program in the file `status_fd`, when there is one.
[[noreturn]] void become(const child_plan& plan, const int (&stdio)[3], int failure_fd, pid_t host,
                         const rlimit& open_files, int status_fd = -1);

} // namespace boyd::adapters
