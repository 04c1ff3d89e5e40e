#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Models, tools, policies and budgets as values of the configuration (docs/executors.md).
namespace boyd::config {

/// Prices in millionths of a US dollar per million tokens (2.50 dollars: 2,500,000).
struct model_price {
  std::int64_t input = 0;
  std::int64_t cached_input = 0; ///< tokens the provider found in its prompt cache
  std::int64_t output = 0;       ///< reasoning tokens count as output

  bool operator==(const model_price&) const = default;
};

/// What a provider's endpoint can do. Presets have defaults; `boyd doctor --provider` finds out.
struct model_capabilities {
  bool tools = true;
  bool schema = true; ///< response_format json_schema
  bool stream = true;
  bool stream_usage = true; ///< stream_options.include_usage is understood

  bool operator==(const model_capabilities&) const = default;
};

/// One endpoint that answers chat completions, and the limits that Boyd keeps towards it.
struct provider {
  std::string provider_id;
  std::string preset;       ///< empty, or the name of the defaults that were taken
  std::string base_url;     ///< without a trailing slash, e.g. https://api.openai.com/v1
  std::string api_key;      ///< empty: no Authorization header (allowed on loopback only)
  std::string api_key_file; ///< absolute; read at each use, so that a key can be changed
  std::string model;        ///< for executors that name none
  std::vector<std::pair<std::string, std::string>> headers; ///< sent with each request
  std::map<std::string, model_price> prices;                ///< by model; "*": all others
  model_capabilities capabilities;
  /// Which of them the file itself says. In the place of the others (defaults, presets) goes what
  /// `boyd doctor --provider` found.
  model_capabilities said{false, false, false, false};
  int max_concurrent = 4;
  int requests_per_minute = 0;        ///< 0: no limit
  std::int64_t tokens_per_minute = 0; ///< 0: no limit; input and output together
  milliseconds connect_timeout = 10s;
  milliseconds request_timeout = 10min; ///< of one request, its retries apart
  int max_retries = 2;                  ///< of one request, as the official clients count

  bool operator==(const provider&) const = default;
};

/// Where a run goes on when its provider does not serve it.
struct model_fallback {
  std::string provider_id;
  std::string model; ///< empty: the provider's
  /// When: `overloaded`, `rate_limited`, `unavailable`, `not_found`, `quota`; empty: the first
  /// three.
  std::vector<std::string> on;

  bool operator==(const model_fallback&) const = default;
};

/// `executor: {type: chat, …}`: a model with tools (docs/executors.md).
struct chat_executor {
  std::string provider_id;
  std::string model;     ///< empty: the provider's
  std::string workspace; ///< absolute after loading; empty: the kernel's home. Tools end here.
  std::string system;    ///< before the kernel's system prompt's place; may be empty
  std::optional<double> temperature;
  std::int64_t max_output_tokens = 0; ///< of one answer; 0: the provider's default
  int max_turns = 25;
  std::string schema_json; ///< JSON Schema of the final answer; empty: any text
  std::vector<model_fallback> fallback;
  std::size_t output_bytes = limits::output_bytes;

  bool operator==(const chat_executor&) const = default;
};

enum class policy_decision : std::uint8_t { allow, deny, ask };

/// One rule; the first whose every given part matches decides. Patterns: `*` any run of characters
/// but `/`, `**` any run, `?` one character; everything else stands for itself.
struct policy_rule {
  std::string tool = "*"; ///< built-in name or mcp__server__tool
  std::string path;       ///< relative to the workspace; empty: any
  std::string command;    ///< the command line joined by spaces, here `*` crosses `/`; empty: any
  std::string host;       ///< host name; empty: any
  policy_decision decision = policy_decision::deny;
  std::string reason; ///< shown with the decision

  bool operator==(const policy_rule&) const = default;
};

/// What becomes of an action that a person is to decide (`decision: ask`).
struct approval_terms {
  milliseconds expires = std::chrono::hours{24}; ///< how long a person may decide and it be used
  milliseconds wait = 5min;                      ///< how long the run waits
  bool ends_run = false; ///< nobody decided in time: the run ends; false: the action is denied
  /// Globs of paths below the workspace whose contents the approval of a command does not bind.
  std::vector<std::string> unbound{};

  bool operator==(const approval_terms&) const = default;
};

/// What an agent's actions may be. Where no rule matches: a tool that is listed in `tools` is
/// allowed when it is built in and not run_command; everything else is denied.
struct action_policy {
  std::vector<policy_rule> rules;
  int actions_per_minute = 0; ///< 0: no limit
  approval_terms approval;

  bool operator==(const action_policy&) const = default;
};

/// The most that may be used up; 0: no limit here.
struct budget_limit {
  std::int64_t tokens = 0;
  std::int64_t cost = 0; ///< millionths of a US dollar
  int turns = 0;         ///< calls of a model
  milliseconds wall{0};

  bool operator==(const budget_limit&) const = default;
};

/// Budgets of an agent; a day is one of UTC.
struct agent_budget {
  budget_limit run{.tokens = limits::run_tokens, .cost = limits::run_cost};
  budget_limit day{.tokens = limits::day_tokens, .cost = limits::day_cost};

  bool operator==(const agent_budget&) const = default;
};

} // namespace boyd::config
