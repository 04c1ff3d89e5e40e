#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <cstddef>

namespace boyd {

/// A file tool that has not been answered for so long hangs: less than its run waits for it.
inline constexpr milliseconds tool_hangs_after = 100s;
/// Threads that may hang in file systems which do not answer; with more of them calls are refused.
inline constexpr std::size_t lost_tool_workers = 8;

/// Starts the keeper of files in agents' workspaces with its worker, and with the first call of a
/// file tool workers for these. One of them that hangs is given up: another takes its place, the
/// workspace is refused until it comes back, and the part's health names it.
workspace_actor spawn_workspace(caf::actor_system& system, node_context_ptr context,
                                milliseconds hangs_after = tool_hangs_after);

} // namespace boyd
