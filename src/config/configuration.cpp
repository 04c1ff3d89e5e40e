#include "boyd/config/configuration.hpp"

#include <algorithm>
#include <variant>

namespace boyd::config {

const kernel* configuration::find_kernel(const std::string& kernel_id) const noexcept {
  for (const auto& k : kernels) {
    if (k.kernel_id == kernel_id) {
      return &k;
    }
  }
  return nullptr;
}

namespace {

struct executor_name {
  std::string_view operator()(const command_executor&) const { return "command"; }
  std::string_view operator()(const script_executor&) const { return "script"; }
  std::string_view operator()(const chat_executor&) const { return "chat"; }
  std::string_view operator()(const agent_cli_executor& e) const {
    return e.adapter.name == "improve" ? "improve" : "agent_cli";
  }
};

} // namespace

std::string_view name_of(const executor& e) noexcept {
  return std::visit(executor_name{}, e);
}

bool is_mcp_name(std::string_view name) noexcept {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= mcp_name_bytes && letter(name.front()) &&
         letter(name.back()) && name.find("__") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-' || c == '_'; });
}

const mcp_server* find_mcp_server(const configuration& c, std::string_view name) noexcept {
  for (const auto& s : c.mcp_servers) {
    if (s.name == name) {
      return &s;
    }
  }
  return nullptr;
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
