#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace boyd::adapters {

/// Why `pid` cannot speak for a person: it, or a process that it descends from, is the node `node`
/// (0: none), or the process host of any node, or bears the mark of a run (BOYD_RUN), or it has
/// ended or may not be looked at.
/// Empty: nothing speaks against it. What a run leaves behind stays below the node's process host,
/// whatever it forked, as long as that lives; see docs/security.md for what this does not find.
/// `hidden`: a process whose environment may not be read is not held against it (root's, from a
/// node that is not). A few reads of /proc; racy by nature, so to be asked as soon as `pid` is
/// known.
std::string why_not_a_person(pid_t pid, pid_t node, bool hidden = false);

/// "name (process 4711)"; for people.
std::string describe_process(pid_t pid);

/// "anna, with boyd (process 4711)"; for people, and for the record of who decided. A user whom
/// /etc/passwd does not name is "user 1000".
std::string describe_caller(pid_t pid, std::int64_t user);

} // namespace boyd::adapters
