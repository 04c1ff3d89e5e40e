#pragma once

#include "boyd/core/result.hpp"
#include "boyd/exec/command_line.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::exec {

/// "{name}" and what stands for it.
using placeholder_values = std::vector<std::pair<std::string, std::string>>;

/// What every run has.
placeholder_values placeholders(const run_identity& who);

/// Replaces each placeholder once, from left to right; what was put in is not looked at again.
std::string expand(std::string_view text, const placeholder_values& values);

/// `invalid_argument` for a value that begins with '-' or holds NUL.
result<void> check_placeholders(const placeholder_values& values);

/// Where the prompt of a run is when its arguments name {prompt_file}.
std::string prompt_path(const run_identity& who);

} // namespace boyd::exec
