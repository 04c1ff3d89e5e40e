#pragma once

#include <string>
#include <string_view>

namespace boyd::state {

/// The first STATE.md of a kernel, exactly as docs/planning.md has it.
std::string seed_state(std::string_view kernel_name);

} // namespace boyd::state
