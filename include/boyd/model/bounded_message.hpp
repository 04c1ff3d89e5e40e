#pragma once

#include "boyd/model/chat.hpp"

#include <cstddef>

namespace boyd::model {

/// An assistant's message in which arguments of tool calls that have more than `most` bytes are
/// replaced by a JSON object that says how many there were; everything else stays as it is. What
/// was refused for its size would cost its tokens again with every call that follows.
message_json without_long_arguments(const message_json& message, std::size_t most);

} // namespace boyd::model
