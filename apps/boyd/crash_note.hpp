#pragma once

#include "boyd/ports/ports.hpp"

#include <functional>
#include <memory>
#include <string>

namespace boyd {
class file_system;
}

namespace boyd::app {

/// From here on a fault of this process (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) leaves
/// HOME/run/crash behind before the process ends as it would have. Once per process, before other
/// threads start. A thread whose stack overflows leaves one, too, when it has another one for
/// signals, as those of the actor system and the caller have (signal_stack_hook.hpp).
void leave_crash_note(const std::string& home);

using store_factory = std::function<std::unique_ptr<dispatch_store>()>;

/// The node before this one left that note.
bool has_crash_note(const std::string& home, file_system& files);

/// A factory of the same stores, with one difference while HOME/run/crash is there: what this node
/// ran when it crashed is taken back strictly, so that a dispatch which was lost with its node
/// before is failed now, not after the usual number of losses. A dispatch that crashes its node
/// must not do so again and again (FAULTS.md, case 25). The first take-back that is recorded
/// removes the note.
store_factory strict_after_crash(store_factory make, const std::string& home,
                                 std::shared_ptr<file_system> files);

} // namespace boyd::app
