#pragma once

#include "boyd/mcp/protocol.hpp"
#include "boyd/tools/definitions.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Tools of servers under names that every provider takes (docs/executors.md).
namespace boyd::mcp {

/// The longest name of a tool that providers take (letters, digits, `_` and `-`).
inline constexpr std::size_t tool_name_bytes = 64;
inline constexpr std::string_view tool_prefix = "mcp__";

/// A tool as a model is told of it, and what a call of it asks of the server.
struct offered_tool {
  enum class kind_t : std::uint8_t { tool, list_resources, read_resource };
  tools::definition definition;
  kind_t kind = kind_t::tool;
  std::string name; ///< the server's own, of a tool
};

/// `tools` of the server `server` as mcp__<server>__<tool>, in their order; with `resources`, two
/// more that list and read those. Characters that providers do not take become `_`; a name that is
/// too long, or that two tools would have, ends with a part of the hash of the server's own name,
/// so that it is the same from one day to the next.
std::vector<offered_tool> offer(std::string_view server, const std::vector<server_tool>& tools,
                                bool resources);

/// The server in mcp__<server>__<tool>; empty when `name` is no such name.
std::string_view server_of(std::string_view name) noexcept;

/// Whether a pattern of an agent's `tools` may name a tool of `server`.
bool may_name(std::string_view pattern, std::string_view server);

} // namespace boyd::mcp
