#pragma once

#include "actors/mcp/core.hpp"
#include "actors/mcp/pool.hpp"
#include "actors/mcp_server/actor.hpp"
#include "actors/supervision/shell.hpp"
#include "boyd/mcp/protocol.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Private to actors/mcp: what its files share.
namespace boyd::mcp_pool {

using pool_impl = mcp_actor::extend<caf::reacts_to<supervise_tick>, caf::reacts_to<stop_overdue>,
                                    caf::reacts_to<server_idle>, caf::reacts_to<server_found>,
                                    caf::reacts_to<server_withholds>,
                                    caf::replies_to<server_listed>::with<answers<bool>>,
                                    caf::replies_to<server_starting>::with<answers<bool>>,
                                    caf::replies_to<ping>::with<pong>, caf::reacts_to<pong>>;

using tools_promise = caf::typed_response_promise<result<mcp_tools_reply>>;
using call_promise = caf::typed_response_promise<result<mcp_call_reply>>;
using servers_promise = caf::typed_response_promise<result<mcp_servers_reply>>;
using trust_promise = caf::typed_response_promise<result<mcp_trust_reply>>;

/// An instance that is supervised.
struct member {
  mcp_core::instance what;
  std::uint64_t requests = 0; ///< that were sent to it
};

/// The tools of several servers for one run, as they come in.
struct tools_collector {
  tools_promise promise;
  mcp_user user;
  std::vector<std::string> patterns;
  mcp_tools_reply reply;
  std::map<std::string, std::vector<mcp_tool>> found; ///< by server: in a fixed order
  std::size_t missing = 0;
  bool answered = false;
};

/// What a .mcp.json says now, and what of it is trusted.
struct workspace_view {
  std::vector<mcp::found_server> found;
  std::vector<mcp::trusted_server> trusted;
  mcp_core::workspace_servers servers;
};

using view_taker = std::function<void(result<workspace_view>)>;

struct pool_state {
  node_context_ptr context;
  configuration_ptr configuration;
  workspace_actor workspace;
  approvals_actor approvals;
  std::unique_ptr<supervisor_shell<pool_impl::base>> shell;
  std::map<std::string, member> members;       ///< by key
  std::map<std::string, mcp::era_t> eras;      ///< by key, of this node's life
  std::map<std::string, std::string> tickets;  ///< of calls: the key of the server that has it
  std::map<std::uint64_t, call_promise> calls; ///< not answered yet: runs outlive this part
  std::uint64_t called = 0;                    ///< the newest of these numbers
  std::vector<std::weak_ptr<tools_collector>> collectors;
  /// By key: what is to be asked of the server when the one before it has ended.
  std::map<std::string, std::vector<std::function<void()>>> behind_the_end;
  /// Of reloads whose changed servers have not ended yet (messages/dispatching.hpp).
  std::vector<std::shared_ptr<const void>> heard;
  /// Servers of workspaces, as the latest look found them.
  std::map<std::string, mcp_core::workspace_servers> seen;
  /// By key: how the tools of a server of the configuration differ from its pins, in lines.
  std::map<std::string, std::vector<std::string>> withheld;
  /// By key: how the tools of a server differ from those that were trusted.
  std::map<std::string, std::vector<std::string>> changes;
  std::deque<std::function<void()>> trust_jobs; ///< changes of the file of trust, one at a time
  bool trusting = false;
  static inline const char* name = "mcp";

  ~pool_state();
};

using self_pointer = pool_impl::stateful_pointer<pool_state>;

/// The server of `what`, started when it is not there; null while it waits for its restart, is
/// parked or cannot be started.
mcp_server_actor server_for(self_pointer self, const mcp_core::instance& what);
void reconcile(self_pointer self);
/// Ends it; the next use starts it anew.
void end_server(self_pointer self, const std::string& key);

/// Why there is no server now.
error no_server(self_pointer self, const std::string& key);
/// Beyond what a server may take to start.
inline constexpr milliseconds start_slack = 5s;

// status.cpp
servers_promise servers(self_pointer self, const mcp_servers_query& m);

// trust.cpp
/// Looks into the .mcp.json of `workspace`; a missing one names no servers.
void look_into(self_pointer self, const std::string& workspace, view_taker then);
/// The workspaces of agents that may use servers of their .mcp.json, each once.
std::vector<std::string> open_workspaces(self_pointer self);
/// The agents that may use what the .mcp.json of `workspace` names, in the order of the file.
std::vector<const config::agent*> agents_in(self_pointer self, const std::string& workspace);
trust_promise decide_trust(self_pointer self, const mcp_trust_order& order);
/// Whether the tools that a server of a workspace has now are those that were trusted; the first
/// ones are.
caf::typed_response_promise<result<bool>> check_tools(self_pointer self, const server_listed& m);
/// Whether the files that its command line names are still those that were trusted.
caf::typed_response_promise<result<bool>> check_programs(self_pointer self,
                                                         const server_starting& m);

} // namespace boyd::mcp_pool
