#pragma once

#include "passes.hpp"

/// The part of convert about models: each takes a valid, filled map of the schema's definition.
namespace boyd::config {

provider provider_of(const pass& p, const tree& t);
chat_executor chat_executor_of(const pass& p, const tree& t);
action_policy policy_of(const tree& t);
approval_notices notices_of(const pass& p, const tree& t);
/// `t`: the entry of `mcpServers` under `name`.
mcp_server mcp_server_of(const pass& p, const std::string& name, const tree& t);
agent_budget budget_of(const tree& t);

planner planner_of(const tree& t);
reducer reducer_of(const tree& t);

} // namespace boyd::config
