#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string_view>

namespace boyd {

/// How deep arrays and objects of a JSON text are nested. Reads any bytes, needs no memory.
std::size_t json_depth_of(std::string_view text) noexcept;

/// `limit_exceeded` beyond limits::json_depth. To be called before JSON from outside is parsed: a
/// deep value overflows the stack when it is copied, dumped or destroyed (FAULTS.md, fact 10).
result<void> check_json_depth(std::string_view text);

} // namespace boyd
