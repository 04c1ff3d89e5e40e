#pragma once

#include "boyd/config/load.hpp"
#include "boyd/config/mcp.hpp"
#include "boyd/core/result.hpp"
#include "boyd/mcp/protocol.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Servers that a workspace's `.mcp.json` names: whoever can write the file could have the node run
/// anything, so a person says which are trusted, and as what (docs/executors.md). Pure.
namespace boyd::mcp {

/// The largest `.mcp.json`, and the most servers of one.
inline constexpr std::size_t mcp_json_bytes = 256u << 10;
inline constexpr std::size_t most_servers = 64;

/// A person can look at no more; a server whose definition is longer is not used.
inline constexpr std::size_t definition_bytes = 16u << 10;

/// The pin of a tool: the hash of its name, its description and its arguments, so that none of them
/// can change unseen. The order of members in the arguments does not count.
std::string tool_pin(const server_tool& tool);

/// A server's tools by the pins that its entry of mcpServers has.
struct pinned_tools {
  std::vector<server_tool> usable;             ///< as they were pinned, in their order
  std::map<std::string, std::string> withheld; ///< by name, why
  std::vector<std::string> gone;               ///< pinned, and not there
};
/// Without pins every tool is usable.
pinned_tools by_pins(const std::vector<std::pair<std::string, std::string>>& pins,
                     const std::vector<server_tool>& tools);

/// Files of the workspace that a command line names, by path, and the hashes of their contents.
using program_prints = std::map<std::string, std::string>;

/// One server of a `.mcp.json`.
struct found_server {
  config::mcp_server definition;    ///< ${VAR} replaced
  std::string hash;                 ///< of the definition as the file has it
  std::string words;                ///< the same in one short line, for messages
  std::string shown;                ///< all of it, in lines, for a person who is to trust it
  std::vector<std::string> secrets; ///< values that ${VAR} brought in
  std::string problem;              ///< why it cannot be used at all; empty: it can
  program_prints programs{};        ///< filled by whoever reads the files
};

/// What a person trusts: the definition as the file has it, and the programs.
std::string pin_of(const found_server& s);
/// All that pin_of is about, in lines.
std::string pin_text(const found_server& s);

/// Why a person could not see all that they would trust: something in pin_text is a secret, or
/// looks like one, and would be shown as "[redacted]". Empty: they can. `secrets` as
/// config::redact_text takes them.
std::string unseen_problem(const found_server& s, const std::vector<std::string>& secrets);

/// The paths that a server's command line names: the command, the arguments, and the parts of
/// arguments between blanks, quotes and signs; absolute, below `workspace` by their names, whatever
/// is there. A command without a slash is looked for where a PATH of its own leads. `s` without
/// {workspace}, `cwd` absolute.
std::vector<std::string> named_paths(const config::mcp_server& s, const std::string& cwd,
                                     const std::string& workspace);

/// How `now` differs from what was trusted, one line for each file; empty: not at all.
std::vector<std::string> program_changes(const program_prints& then, const program_prints& now);

/// The servers of a `.mcp.json`, by name; other members are not looked at. `${VAR}` and
/// `${VAR:-default}` are replaced in command, args, env, url and headers. A server that cannot be
/// used is among them, with its problem. Error `parse_error` or `limit_exceeded` for a file that is
/// none.
result<std::vector<found_server>> read_mcp_json(std::string_view text,
                                                const config::environment_lookup& environment);

/// A tool as it was when its server was trusted.
struct tool_print {
  std::string description; ///< hash
  std::string schema;      ///< hash

  bool operator==(const tool_print&) const = default;
};

/// A server as a person trusted it.
struct trusted_server {
  std::string file; ///< the .mcp.json, absolute
  std::string name;
  std::string hash;       ///< found_server::hash
  std::string words;      ///< found_server::words
  std::string at;         ///< when, RFC 3339
  bool has_tools = false; ///< false: it was not connected to since
  std::map<std::string, tool_print> tools;
  program_prints programs{}; ///< found_server::programs

  bool operator==(const trusted_server&) const = default;
};

/// The file of trusted servers, for people to read.
std::string trust_text(const std::vector<trusted_server>& all);
/// Error `corrupt` for a text that is none.
result<std::vector<trusted_server>> read_trust(std::string_view text);

std::map<std::string, tool_print> prints_of(const std::vector<server_tool>& tools);

/// What is different from what was trusted, one line for each tool; empty: nothing.
std::vector<std::string> changes_since(const trusted_server& then,
                                       const std::vector<server_tool>& now);

} // namespace boyd::mcp
