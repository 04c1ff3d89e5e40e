#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/tools/definitions.hpp"
#include "messages/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// Who uses servers of tools, and where.
struct mcp_user {
  std::string kernel_id;
  std::string agent_id;
  std::string workspace; ///< absolute
};

/// The tools of servers that this agent may use; its servers are started for it. Answered when they
/// are known, or with the error of the first server that is needed and cannot be had.
struct mcp_tools_query : message {
  mcp_user user;
};

/// A tool of a server, as a model is told of it.
struct mcp_tool {
  tools::definition definition;
  std::string server;
  std::string host; ///< of a server with an address; for the policy
};

struct mcp_tools_reply : message {
  std::vector<mcp_tool> tools;
  std::vector<std::string> notes; ///< what is missing, for the record
};

/// One call of a tool. `ticket` is unlike that of every other call of the node.
struct mcp_call : message {
  mcp_user user;
  std::string ticket;
  std::string tool; ///< mcp__server__tool
  std::string arguments_json;
  std::string dispatch_id; ///< for whom a person may be asked
};

/// What the tool said, as a model reads it.
struct mcp_call_reply : message {
  std::string text;
  bool is_error = false;
};

/// Nobody waits for this call any more.
struct mcp_cancel : message {
  std::string ticket;
};

/// How are the servers? `connect`: those of `server` (a name) are started for it, and their tools
/// told.
struct mcp_servers_query : message {
  std::string server; ///< empty: all
  bool connect = false;
};

/// A tool as a server has it now.
struct mcp_tool_status {
  tools::definition definition;
  std::string own_name; ///< the server's; empty: a tool of Boyd's for its resources
  std::string pin;      ///< of a server's tool
  std::string withheld; ///< why it may not be used; empty: it may
};

struct mcp_server_status {
  std::string name;
  std::string from;      ///< the file that defines it
  std::string scope;     ///< the workspace that it runs for; empty: all
  std::string transport; ///< stdio | http
  std::string target;    ///< the command, or the address
  std::string state;     ///< idle | starting | ready | restarting | parked | untrusted | changed
  std::string era;       ///< stateless | handshake; empty: not known
  std::string version;   ///< of the protocol
  std::string says;      ///< the server's own name and version
  std::string problem;   ///< why it is not ready; empty: nothing is wrong
  std::size_t tool_count = 0;
  int restarts = 0;
  std::vector<mcp_tool_status> tools; ///< with `connect` alone; those that are withheld, too
  /// Of a workspace's .mcp.json: all that a person trusts or not, in lines, and its hash.
  std::string definition;
  std::string hash;
  std::string sandbox; ///< what its process is kept in; empty: nothing but its own limits
};

struct mcp_servers_reply : message {
  std::vector<mcp_server_status> servers;
};

/// A person's word about a server of a workspace's .mcp.json.
struct mcp_trust_order : message {
  std::string server;
  std::string workspace; ///< absolute; empty: the only one that has a server of this name
  bool forget = false;   ///< takes the word back
  std::string hash;      ///< of what the person has seen; not needed to take the word back
};

struct mcp_trust_reply : message {
  std::string server;
  std::string file;
  std::vector<std::string> changes; ///< what is trusted from now on, in words
};

} // namespace boyd
