#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace boyd::adapters {

/// The processes whose parent is `pid`, from /proc/<pid>/task/<pid>/children where the kernel has
/// it (the parent must be single-threaded to be complete; the host and shells are), else from a
/// walk over all processes. Racy by nature.
std::vector<pid_t> children_of(pid_t pid);

/// Everything below `pid`, at most `max_descendants`.
std::vector<pid_t> descendants_of(pid_t pid);
inline constexpr std::size_t max_descendants = 16384;

/// The process's parent; -1 when there is no such process, 0 for one that has none here.
pid_t parent_of(pid_t pid);

/// The name of its program, at most 15 characters; empty when there is no such process.
std::string program_name(pid_t pid);

/// Whether the environment can be read that the process was executed with.
bool may_look_into(pid_t pid);

/// The value of `name` in the environment that the process was executed with; empty when it has
/// none or may not be read.
std::string environment_value(pid_t pid, std::string_view name);

/// Whether it is the process host of a node, whoever's: by the arguments that it was executed with.
bool is_process_host(pid_t pid);

/// Shows no arguments: in the middle of an exec it has none, nor an environment. A zombie looks the
/// same, and a process whose first thread has ended.
bool is_in_exec(pid_t pid);

/// All processes of the machine that may be looked at.
std::vector<pid_t> all_processes();

} // namespace boyd::adapters
