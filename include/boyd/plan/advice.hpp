#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What comes of asking a model on the kernel's own behalf (docs/planning.md LLM planner, §4 LLM
/// reducer).
namespace boyd::plan {

/// Under these names the kernel's own questions stand in decisions, budgets and costs. No agent is
/// called so: a colon is in no valid name.
inline constexpr std::string_view planner_voice = "kernel:planner";
inline constexpr std::string_view reducer_voice = "kernel:reducer";

/// True for a row that is the kernel's own and no agent's.
bool is_kernel_voice(std::string_view id) noexcept;

/// Why a model's word was not taken. The names are stable: they stand in rows.
enum class fallback_reason : std::uint8_t {
  none,         ///< it was taken
  timeout,      ///< no answer within the timeout
  refusal,      ///< the model declined
  bad_answer,   ///< no JSON, or not by the schema, also after one repair
  budget,       ///< a budget does not allow the call
  breaker_open, ///< the provider is not called at present
  rate_limited, ///< the provider asks for fewer calls
  provider,     ///< no connection, an error of the provider, a key that is refused, no such model
  cooldown,     ///< asked too short a while ago
  stopped,      ///< the cycle or the node ends
  store,        ///< the budgets or the record could not be reached
};

std::string_view name_of(fallback_reason r) noexcept;
std::optional<fallback_reason> fallback_reason_from(std::string_view name) noexcept;

/// One question and what it cost.
struct advice {
  fallback_reason fell_back = fallback_reason::none;
  std::string why; ///< one line; empty when the answer was taken
  std::string provider_id;
  std::string model;
  int calls = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cost = 0; ///< millionths of a US dollar
  milliseconds latency{0};

  bool operator==(const advice&) const = default;
};

/// "model p/m, 1 call, 812+40 tokens, 0.000102 dollars, 1.2s".
std::string say_cost(const advice& a);

} // namespace boyd::plan
