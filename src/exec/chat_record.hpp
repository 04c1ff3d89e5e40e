#pragma once

#include "../core/json_values.hpp"
#include "boyd/exec/chat_loop.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace boyd::exec {

/// What a whole conversation has used so far.
struct chat_totals {
  model::usage used;
  std::int64_t cost = 0;
  int calls = 0; ///< requests sent
  int turns = 0; ///< answers received
  int tool_calls = 0;
  int denied = 0;
  std::string provider_id; ///< of the last call, made or refused
  std::string model;
  std::optional<milliseconds> retry_after; ///< asked for by the provider that was given up
};

/// The record's first line: what the conversation begins with.
std::string beginning_json(const conversation& c);

/// What an answer was.
std::string answer_json(const chat_target& target, const model::chat_answer& a, int turn,
                        std::int64_t cost);

/// What was decided about a tool call, and why. Its arguments stand in the answer's message.
std::string action_json(const model::tool_call& call, int turn, std::uint64_t step,
                        const judgement& j);

/// What came of it, as the model is told.
std::string result_json(const model::tool_call& call, int turn, std::uint64_t step,
                        const std::string& text, bool is_error);

/// A call that failed, and what comes next.
std::string trouble_json(const chat_target& target, std::uint64_t call, const model::trouble& t,
                         const std::string& next);

/// A target that cannot serve this conversation.
std::string left_out_json(const chat_target& target, const std::string& why);

} // namespace boyd::exec
