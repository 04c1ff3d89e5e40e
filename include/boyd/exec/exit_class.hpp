#pragma once

#include "boyd/core/verdict.hpp"
#include "boyd/ports/process_runner.hpp"

#include <map>
#include <string>

namespace boyd::exec {

/// What the end of a process means when Boyd did not end it itself.
///
/// | end                                                    | failure class            |
/// |--------------------------------------------------------|--------------------------|
/// | code listed in `exit_classes`                          | as listed; none: success |
/// | code 0                                                 | none (success)           |
/// | code 75 (EX_TEMPFAIL), 124 (timeout(1))                | transient                |
/// | code 78 (EX_CONFIG), 126 (not executable), 127 (not found) | environment          |
/// | code 129, 130, 137, 143 (a shell's HUP INT KILL TERM)  | transient                |
/// | any other code                                         | deterministic            |
/// | signal HUP INT QUIT KILL TERM: ended from outside, OOM | transient                |
/// | signal SEGV ABRT BUS ILL FPE SYS PIPE and all others   | deterministic            |
/// | not started: EAGAIN EMFILE ENFILE ENOMEM ETXTBSY EINTR ETOOMANYREFS | transient   |
/// | not started, no errno: the runner refused (stopping, overloaded) | transient   |
/// | not started: E2BIG, EINVAL                             | deterministic            |
/// | not started: any other error (ENOENT, EACCES, …)       | environment              |
///
/// Ended by Boyd (see attempt_core): timed out or stalled: transient; cancelled: none.
failure_class classify_exit(const process_exit& e, const std::map<int, std::string>& exit_classes);

/// Whether it was not started because the node has nothing left to start it with (EAGAIN, EMFILE,
/// ENFILE, ENOMEM), which says nothing of the program; not when its own limits left it nothing.
bool is_shortage(const process_exit& e) noexcept;

/// One line for people: "exit code 3", "killed by signal 11 (Segmentation fault)", the start error.
std::string describe_exit(const process_exit& e);

} // namespace boyd::exec
