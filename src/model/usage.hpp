#pragma once

#include "boyd/model/chat.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace boyd::model {

/// The usage in a chunk or an answer, under whichever name; nothing when there is none.
std::optional<usage> read_usage(const nlohmann::json& answer);

/// The estimate behind estimate_tokens.
std::int64_t tokens_of_bytes(std::size_t bytes) noexcept;

} // namespace boyd::model
