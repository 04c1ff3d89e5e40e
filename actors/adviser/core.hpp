#pragma once

#include "boyd/exec/chat_loop.hpp"
#include "boyd/model/trouble.hpp"
#include "boyd/plan/advice.hpp"

#include <string>

/// What an adviser makes of a conversation's end; CAF-free.
namespace boyd::adviser {

/// An answer, and one more when the first does not follow the schema.
inline constexpr int turns = 2;

/// `none` for an answer.
plan::fallback_reason reason_of(const exec::chat_outcome& out);

/// Why there is no place at the provider.
plan::fallback_reason reason_of_place(const model::trouble& why);

/// Calls, tokens, cost and who was asked, from chat_loop::usage_json.
plan::advice cost_of(const std::string& usage_json);

} // namespace boyd::adviser
