#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Servers of tools (Model Context Protocol) as values of the configuration (docs/executors.md).
namespace boyd::config {

/// The longest name of a server: `mcp__<server>__<tool>` has 64 characters at most.
inline constexpr std::size_t mcp_name_bytes = 32;

/// In `args`, `env` and `cwd`: the absolute workspace of the agent. A server that says it has one
/// process for each workspace.
inline constexpr std::string_view workspace_word = "{workspace}";

/// One entry of `mcpServers`: a program that speaks over its stdin and stdout, or an address.
struct mcp_server {
  std::string name;
  std::string command; ///< empty: `url` is given
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env; ///< set explicitly
  std::vector<std::string> env_pass; ///< names let through from the node's own environment
  std::string cwd; ///< absolute after loading; empty: the node's home, or the folder of .mcp.json
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers; ///< sent with each request
  /// The tools that may be used, by name, with the hash that each must have (mcp::tool_pin); empty:
  /// all, as they are.
  std::vector<std::pair<std::string, std::string>> pins;
  bool optional = false;             ///< runs begin without its tools when it cannot be reached
  milliseconds start_timeout = 60s;  ///< until its tools are known
  milliseconds call_timeout = 2min;  ///< of one call of a tool, since its last word of progress
  milliseconds call_limit = 1h;      ///< of one call that tells of its progress
  milliseconds idle_timeout = 10min; ///< unused for so long, it is ended

  bool operator==(const mcp_server&) const = default;
};

/// Whether `name` may stand between `mcp__` and `__`: letters, digits, `-` and single `_` inside.
bool is_mcp_name(std::string_view name) noexcept;

} // namespace boyd::config
