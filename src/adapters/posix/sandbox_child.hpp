#pragma once

#include "boyd/core/sandbox.hpp"

#include <string>
#include <vector>

namespace boyd::adapters {

/// Makes the run's scratch directory, and those of the writable ones that a program would make. 0,
/// or an errno. First of all: what is not there is granted to nobody.
int make_places(const sandbox_spec& spec);

/// Puts the calling process into the sandbox, for good: resources are limited, what root may do
/// beyond files is given up, privileges are not gained any more, files and calls are confined. 0,
/// or the errno of what failed: then nothing may be executed. For a freshly forked process with one
/// thread, before exec. With bubblewrap the files are its business: see bubblewrap_arguments.
int enter_sandbox(const sandbox_spec& spec);

/// What is put before a program's own arguments; empty for the other kinds. `directory`: where the
/// program begins.
std::vector<std::string> bubblewrap_arguments(const sandbox_spec& spec,
                                              const std::string& directory);

/// What this machine can do. Runs bubblewrap once when it is installed; blocking, at most some
/// seconds. Threads: any.
sandbox_abilities probe_sandbox();

} // namespace boyd::adapters
