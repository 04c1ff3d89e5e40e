#pragma once

#include "boyd/core/result.hpp"

#include <string>
#include <string_view>

namespace boyd::adapters {

/// The error of a system call: `operation` failed on `path` with `number` (an errno).
error system_error(int number, std::string_view operation, const std::string& path);

} // namespace boyd::adapters
