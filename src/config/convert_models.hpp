#pragma once

#include "passes.hpp"

/// The part of convert about models: each takes a valid, filled map of the schema's definition.
namespace boyd::config {

provider provider_of(const pass& p, const tree& t);
chat_executor chat_executor_of(const pass& p, const tree& t);
action_policy policy_of(const tree& t);
agent_budget budget_of(const tree& t);

} // namespace boyd::config
