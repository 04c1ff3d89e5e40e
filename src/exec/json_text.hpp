#pragma once

#include "boyd/core/result.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace boyd::exec {

/// Parses JSON from outside. Its depth is measured before it is parsed: a deep value overflows the
/// stack when it is copied, dumped or destroyed (FAULTS.md, fact 10).
result<nlohmann::json> parse_json(std::string_view text);

} // namespace boyd::exec
