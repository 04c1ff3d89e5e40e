#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/mcp/catalogue.hpp"
#include "boyd/mcp/protocol.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// Which tools do you have? Answered when they are known, or when they will not be.
struct server_tools_query : message {};

struct server_tools : message {
  std::vector<mcp::offered_tool> tools;
  std::vector<std::string> withheld; ///< tools that may not be used, and why, one line each
};

/// How are you, with the tools or without?
struct server_status_query : message {
  bool tools = false;
};

/// What the pool hears of its servers.
struct server_idle : message {
  std::string key;
  std::uint64_t requests = 0; ///< that it has had: when the pool sent more, it is not idle
};

struct server_found : message {
  std::string key;
  mcp::era_t era = mcp::era_t::unknown;
};

/// How the tools of a server with pins differ from those; empty lines: they do not.
struct server_withholds : message {
  std::string key;
  std::vector<std::string> lines;
};

/// The list of tools that a server has now, before anybody may use it.
struct server_listed : message {
  std::string key;
  std::vector<mcp::server_tool> tools;
};

/// A server of a workspace is about to start its process, perhaps once more.
struct server_starting : message {
  std::string key;
};

using mcp_server_owner = caf::typed_actor<
    // It was not used for its idle_timeout.
    caf::reacts_to<server_idle>,
    // This is how it is talked to.
    caf::reacts_to<server_found>,
    // Some of its tools are not used: they are not as they were pinned.
    caf::reacts_to<server_withholds>,
    // Its tools may be used, or why not.
    caf::replies_to<server_listed>::with<answers<bool>>,
    // It may start, or why not.
    caf::replies_to<server_starting>::with<answers<bool>>>;

/// One server of tools: its process or its address, and the conversation with it.
using mcp_server_actor = caf::typed_actor<
    // Which tools?
    caf::replies_to<server_tools_query>::with<answers<server_tools>>,
    // One call.
    caf::replies_to<mcp_call>::with<answers<mcp_call_reply>>,
    // Nobody waits for this call any more.
    caf::reacts_to<mcp_cancel>,
    // How are you?
    caf::replies_to<server_status_query>::with<answers<mcp_server_status>>>;

/// The sandbox of a server of a workspace.
struct server_confinement {
  config::sandbox_settings settings;
  exec::sandbox_places places;
};

/// What a server is made of.
struct mcp_server_order {
  node_context_ptr context;
  config::mcp_server definition; ///< without {workspace}
  std::string key;               ///< of the pool
  std::string cwd;               ///< absolute
  std::string cwd_within{};      ///< as process_spec's: the workspace, for a directory below it
  std::vector<std::string> secrets;
  mcp::era_t remembered = mcp::era_t::unknown;
  /// It asks the pool before it starts, and shows it the list of tools before that is used.
  bool pinned = false;
  /// What its process is kept in; none: nothing but the limits of every child.
  std::optional<server_confinement> confinement{};
  mcp_server_owner owner;
  approvals_actor approvals{}; ///< null: nobody can be asked
};

/// Starts a server: its process at once, an address with its first question. It ends itself with
/// its process, and its process with itself. An address that does not answer is tried again when it
/// is wanted.
mcp_server_actor spawn_mcp_server(caf::actor_system& system, mcp_server_order order);

} // namespace boyd
