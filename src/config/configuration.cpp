#include "boyd/config/configuration.hpp"

namespace boyd::config {

const kernel* configuration::find_kernel(const std::string& kernel_id) const noexcept {
  for (const auto& k : kernels) {
    if (k.kernel_id == kernel_id) {
      return &k;
    }
  }
  return nullptr;
}

std::string_view name_of(const executor& e) noexcept {
  if (std::holds_alternative<command_executor>(e))
    return "command";
  if (std::holds_alternative<agent_cli_executor>(e))
    return "agent_cli";
  return std::holds_alternative<script_executor>(e) ? "script" : "chat";
}

const provider* find_provider(const configuration& c, const std::string& provider_id) noexcept {
  for (const auto& p : c.providers) {
    if (p.provider_id == provider_id) {
      return &p;
    }
  }
  return nullptr;
}

const agent* find_agent(const kernel& k, const std::string& agent_id) noexcept {
  for (const auto& a : k.agents) {
    if (a.agent_id == agent_id) {
      return &a;
    }
  }
  return nullptr;
}

} // namespace boyd::config
