#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What client and server must agree on (specification revisions 2024-11-05 to 2026-07-28).
namespace boyd::mcp {

/// The stateless revision: every request says version, client and capabilities in its `_meta`.
inline constexpr std::string_view modern_version = "2026-07-28";
/// Revisions that begin with the `initialize` handshake, the newest first; that one is offered.
inline constexpr std::array<std::string_view, 4> legacy_versions{"2025-11-25", "2025-06-18",
                                                                 "2025-03-26", "2024-11-05"};

/// How a server is talked to.
enum class era_t : std::uint8_t { unknown, modern, legacy };

/// "stateless", "handshake", or empty.
std::string_view name_of(era_t era) noexcept;

bool is_legacy_version(std::string_view version) noexcept;

/// Members of `_meta` in requests of the stateless revision.
namespace meta_key {
inline constexpr const char* version = "io.modelcontextprotocol/protocolVersion";
inline constexpr const char* client = "io.modelcontextprotocol/clientInfo";
inline constexpr const char* capabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr const char* server = "io.modelcontextprotocol/serverInfo";
} // namespace meta_key

/// How much of a list is taken from a server.
inline constexpr std::size_t most_pages = 100;
inline constexpr std::size_t most_tools = 1000;
inline constexpr std::size_t tools_bytes = 4u << 20;
/// Calls of one server that are under way or wait.
inline constexpr std::size_t most_calls = 256;
/// How often one call may come back with questions.
inline constexpr int most_rounds = 8;
/// Questions of one answer, and of one call in all.
inline constexpr std::size_t most_questions = 16;

/// A parameter of a tool that goes into a header as well (x-mcp-header).
struct param_header {
  std::vector<std::string> path; ///< names of properties, from the root of the arguments
  std::string name;              ///< without "Mcp-Param-"

  bool operator==(const param_header&) const = default;
};

/// A tool as its server describes it.
struct server_tool {
  std::string name;
  std::string description;
  std::string schema_json; ///< of its arguments, an object
  std::vector<param_header> headers;

  bool operator==(const server_tool&) const = default;
};

} // namespace boyd::mcp
