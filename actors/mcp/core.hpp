#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/mcp/trust.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which servers there are, for whom: decisions as values, free of CAF.
namespace boyd::mcp_core {

/// One process or address that serves agents.
struct instance {
  std::string key;                    ///< "mcp:files", or with the workspace that it runs for
  std::string name;                   ///< of the server
  config::mcp_server definition;      ///< without {workspace}
  std::string workspace;              ///< that it runs for; empty: all
  std::string cwd;                    ///< absolute
  std::string file;                   ///< that defines it
  bool pinned = false;                ///< of a .mcp.json: trusted by a person, and as it was then
  std::vector<std::string> secrets{}; ///< that its definition took from the environment
  mcp::program_prints programs{};     ///< of a .mcp.json: as they were trusted
  std::string shown{};                ///< of a .mcp.json: all that is trusted, in lines
  std::string pin{};                  ///< and its hash
  /// What it is kept in: of a .mcp.json, the sandbox of the agent that uses it. None: nothing.
  std::optional<config::sandbox_settings> sandbox{};

  bool operator==(const instance&) const = default;
};

/// The name of the part that serves `server` for `workspace` (empty: for all).
std::string key_of(std::string_view server, const std::string& workspace);

/// A server of the configuration for an agent that works in `workspace`; `home`: where it runs
/// when nothing else is said.
instance instance_of(const config::mcp_server& server, const std::string& workspace,
                     const std::string& home, const std::string& file);

/// The servers of the configuration that one of `patterns` may name, in the order of the file.
std::vector<const config::mcp_server*> wanted(const config::configuration& c,
                                              const std::vector<std::string>& patterns);

/// A server of a .mcp.json that may not be used.
struct refused_server {
  std::string name;
  std::string words;    ///< what it would run, or ask
  std::string shown;    ///< all of that, in lines
  std::string pin;      ///< and its hash
  bool changed = false; ///< it was trusted as another one
  error why;
};

/// The servers of one .mcp.json.
struct workspace_servers {
  std::vector<instance> usable;
  std::vector<refused_server> refused;
};

/// Where the servers of a workspace are named, and where a person's word about them is kept.
std::string file_of(const std::string& workspace);
std::string trust_file_of(const std::string& home);

/// Paths of files below the workspace that the command line of `found` names: see mcp::named_paths.
std::vector<std::string> programs_of(const std::string& workspace, const mcp::found_server& found);

/// Which of `found` may be used in `workspace`: those that were trusted as they are.
workspace_servers judge(const std::string& workspace, const std::vector<mcp::found_server>& found,
                        const std::vector<mcp::trusted_server>& trusted);

/// A server of a .mcp.json for an agent: in that agent's own sandbox. `sharing`: the agents that
/// work in its workspace. Those whose sandboxes differ have a process each.
instance kept_in_sandbox(instance i, const config::agent& user,
                         const std::vector<const config::agent*>& sharing);

/// `all` with the present definition of `server` in place of an earlier one.
std::vector<mcp::trusted_server> with_trust(std::vector<mcp::trusted_server> all,
                                            const mcp::trusted_server& server);
std::vector<mcp::trusted_server> without_trust(std::vector<mcp::trusted_server> all,
                                               const std::string& file, const std::string& name);

/// The names of servers that `patterns` name without a wildcard and that nobody defines: the agent
/// cannot do its work.
std::vector<std::string> missing(const std::vector<std::string>& known,
                                 const std::vector<std::string>& patterns);

} // namespace boyd::mcp_core
