#pragma once

#include <cstddef>
#include <string>

namespace boyd::adapters {

/// Ends (SIGKILL) every process that bears the mark of a run (BOYD_RUN) of a node on `home`
/// (BOYD_HOME, absolute), and returns how many there were. For whoever has just taken the home's
/// lock: they are of a node that was killed together with its process host, and nobody else ends
/// them. Those of other users, and those that have cleared their environment, are not seen. Any
/// thread; some ms for a thousand processes.
std::size_t end_left_runs(const std::string& home);

} // namespace boyd::adapters
