#pragma once

#include "boyd/core/result.hpp"
#include "boyd/mcp/json_rpc.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::mcp {

/// A tool that this program offers to others.
struct served_tool {
  std::string name;
  std::string title;
  std::string description;
  std::string schema_json; ///< of its arguments, an object
  bool changes = false;    ///< else it only reads
};

/// Does what a tool does; the arguments are an object. The answer is a JSON object. An error is
/// told to the caller as the tool's failure, not as one of the protocol.
using tool_performer =
    std::function<result<std::string>(const served_tool& tool, const std::string& arguments_json)>;

/// The server's side of the protocol, tools alone, one client: both the handshake and the stateless
/// revision, told apart by each request. Pure but for what `perform` does, which blocks the message
/// that asked for it. Not thread-safe.
class server {
 public:
  /// `version`: of this program. `instructions`: what a model is told of all the tools.
  server(std::string version, std::string instructions, std::vector<served_tool> tools,
         tool_performer perform);

  /// Takes one message in. What is to be written as an answer, one line without its break; nothing
  /// for notifications and for answers to what was never asked. Any bytes.
  std::optional<std::string> on_message(std::string_view text);

 private:
  /// The result of a request, an object, or why there is none.
  using outcome = tl::expected<std::string, rpc_error>;
  outcome in_handshake_era(const rpc_request& request);
  outcome in_stateless_era(const rpc_request& request);

  std::string version_;
  std::string instructions_;
  std::vector<served_tool> tools_;
  tool_performer perform_;
  bool greeted_ = false; ///< the handshake has been made
};

} // namespace boyd::mcp
