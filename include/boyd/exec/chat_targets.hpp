#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/exec/chat_loop.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Where a conversation may be led: the provider's model (empty: its own), then the fallbacks in
/// their order. Keys are those of the configuration; whoever needs one from a file reads it. Fails
/// with `invalid_configuration` for a provider that is not there and for one without a model. Pure.
result<std::vector<chat_target>> chat_targets(const config::configuration& c,
                                              const std::string& provider_id,
                                              const std::string& model,
                                              const std::vector<config::model_fallback>& fallback);

/// The day's budgets that each call of `agent_id` is taken from: its own (`day`) and the node's.
std::vector<store::reserve_spend::limit>
day_scopes(const config::configuration& c, const std::string& node_id, const std::string& kernel_id,
           const std::string& agent_id, const config::budget_limit& day);

/// The key in the text of a provider's `api_key_file`: its first line that is not blank.
std::string key_in(std::string_view file);

/// Whether the configuration leaves open what the models can do, which `boyd doctor --provider` may
/// have found.
bool leaves_open(const config::provider& p);

} // namespace boyd::exec
