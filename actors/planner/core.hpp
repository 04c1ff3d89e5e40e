#pragma once

#include "boyd/core/result.hpp"
#include "boyd/exec/chat_loop.hpp"
#include "boyd/plan/advice.hpp"

#include <optional>
#include <string>

/// What the planner makes of a conversation's end; CAF-free.
namespace boyd::planning {

/// An answer, and one more when the first does not follow the schema.
inline constexpr int question_turns = 2;

/// A model's answer, or why there is none.
struct advice_reply {
  plan::advice facts;
  std::string answer; ///< JSON by the schema; empty when facts.fell_back says why
};

/// `none` for an answer.
plan::fallback_reason reason_of(const exec::chat_outcome& out);

/// `talk` null: it did not begin. `cut`: conversation_reply::cut.
advice_reply advice_of(const exec::chat_loop* talk, const std::optional<error>& cut);

} // namespace boyd::planning
