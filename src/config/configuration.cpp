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

const agent* find_agent(const kernel& k, const std::string& agent_id) noexcept {
  for (const auto& a : k.agents) {
    if (a.agent_id == agent_id) {
      return &a;
    }
  }
  return nullptr;
}

} // namespace boyd::config
