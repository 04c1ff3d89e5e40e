#pragma once

#include "../json_view.hpp"
#include "../terminal.hpp"

#include <string>

namespace boyd::app {

/// One line of the record of a conversation (docs/executors.md) as text for a person, its lines
/// ended. What is long is shortened, and says so.
std::string turn_as_text(const json& item, const terminal& t);

} // namespace boyd::app
