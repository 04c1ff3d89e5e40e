#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/mcp/json_rpc.hpp"
#include "boyd/mcp/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace boyd::mcp {

/// What a client is, and how patient.
struct session_options {
  std::string client_name = "boyd";
  std::string client_version;
  /// Requests go by HTTP: a timed-out one is ended by closing its stream, and refusals come with a
  /// status.
  bool http = false;
  milliseconds start_timeout = 60s; ///< from begin() until the tools are known
  /// A server on stdio that has not answered the first question for so long is taken for one that
  /// ignores what it does not know.
  milliseconds probe_timeout = 5s;
  milliseconds list_lifetime = 5min; ///< of a list of tools whose server will not tell of changes
  milliseconds question_timeout = std::chrono::hours{24}; ///< until a person has answered
  era_t remembered = era_t::unknown;                      ///< what the same server was before
  bool asks = false; ///< questions for a person can be answered: said to the server
  /// Somebody looks at the list of tools before it is used: calls wait for on_tools_checked(),
  /// after each handshake and whenever the list is another one.
  bool checks_tools = false;
};

/// A question of a server for a person (elicitation/create).
struct question {
  std::string call;        ///< of the call that it belongs to; empty: not known
  std::string mode;        ///< form | url
  std::string message;     ///< as the server says it
  std::string schema_json; ///< of a form
  std::string url;         ///< to be opened by a person
};

/// What a person said.
struct question_answer {
  std::string action = "decline"; ///< accept | decline | cancel
  std::string content_json;       ///< of an accepted form, an object
};

/// Why a message could not be delivered.
struct delivery_failure {
  int status = 0;                 ///< of HTTP; 0: no answer at all
  std::string what;               ///< for a person
  std::optional<rpc_error> error; ///< what the body said
  bool session_gone = false;      ///< the server forgot who we are: nothing was done
};

/// What is asked of a server.
struct server_call {
  enum class kind_t : std::uint8_t { tool, list_resources, read_resource };
  std::string key; ///< the caller's own name for it, unlike that of every other call
  kind_t kind = kind_t::tool;
  std::string name;           ///< of the tool, or the resource's URI
  std::string arguments_json; ///< of a tool: an object, or empty
  std::string cursor;         ///< of a list; empty: from the beginning
  milliseconds timeout = 2min;
  /// Each word of progress gives it `timeout` again, up to so long in all; less than `timeout`:
  /// as long as `timeout`.
  milliseconds longest = 1h;
};

/// Why a call may not be made; nothing: it may.
using call_judge = std::function<std::optional<error>(const server_call&)>;

namespace effect {

/// Hands a message to the server. A request has an id; its answer comes through on_message, or
/// on_undelivered.
struct send {
  std::string text; ///< one message, without a line break
  std::optional<std::int64_t> id;
  std::string method; ///< empty: an answer to the server
  std::string name;   ///< of the tool, or the URI, where the method has one
  std::vector<std::pair<std::string, std::string>> param_headers;
  bool stays_open = false; ///< its answers come as long as the connection lasts
  milliseconds patience = 2min;
};

/// Nobody waits for this request any more: its stream is closed (HTTP alone).
struct abandon {
  std::int64_t id = 0;
};

/// The outcome of a call: the result as it came, or why there is none.
struct call_done {
  std::string key;
  result<std::string> result_json;
};

/// The tools are known; from now on calls are sent at once, or when the tools are checked.
struct ready {};

/// The list of tools is another one than before.
struct tools_changed {};

/// A person is to answer; on_answer follows.
struct ask {
  std::uint64_t number = 0;
  question what;
};

/// Nobody waits for this answer any more.
struct withdraw {
  std::uint64_t number = 0;
};

/// Something to write down: what the server says, or what was odd about it.
struct note {
  bool warn = false;
  std::string text;
};

/// The connection is of no use; all calls are answered. Always the last effect.
struct failed {
  error why;
};

} // namespace effect

using session_effect = std::variant<effect::send, effect::abandon, effect::call_done, effect::ready,
                                    effect::tools_changed, effect::ask, effect::withdraw,
                                    effect::note, effect::failed>;
using session_effects = std::vector<session_effect>;

/// A conversation with one server as a state machine: (event, now) → effects; no clock, no I/O.
///
/// begin() finds out which era the server is of: `server/discover` first; its result, or an error
/// that only the stateless revisions know, means a stateless server, everything else (another
/// error, or silence on stdio) the `initialize` handshake. Then the tools are listed, page by page.
/// Calls may be made from the beginning; they wait until the tools are known.
///
/// Every request has a limit of time; late and unknown answers change nothing. What a server sends
/// that is no message is noted, and ends the connection after too many. Not thread-safe.
class session {
 public:
  explicit session(session_options options);
  ~session();
  session(session&&) noexcept;
  session& operator=(session&&) noexcept;

  session_effects begin(steady_time now);
  /// One message (or a batch of them, as revision 2025-03-26 has it). `via`: the request on whose
  /// stream it came, where that is known.
  session_effects on_message(std::string_view text, steady_time now,
                             std::optional<std::int64_t> via = std::nullopt);
  /// The request could not be delivered, or its answer will never come.
  session_effects on_undelivered(std::int64_t id, const delivery_failure& why, steady_time now);
  /// The server has said outside of an answer that it does not know the session any more: one new
  /// handshake. Nothing while one is under way.
  session_effects on_session_lost(steady_time now);
  /// The list of tools was looked at (`checks_tools`): waiting calls and later ones go out unless
  /// `judge` refuses them, until there is another list. Nothing while a list is awaited.
  session_effects on_tools_checked(call_judge judge, steady_time now);
  session_effects call(server_call what, steady_time now);
  /// The caller has given up: nothing comes back.
  session_effects cancel(const std::string& key, steady_time now);
  session_effects on_answer(std::uint64_t number, const question_answer& answer, steady_time now);
  /// To be called at next_time() or later.
  session_effects on_time(steady_time now);
  /// Lists the tools again when their list is old; nothing when it is not, or is on its way.
  session_effects refresh(steady_time now);
  /// The connection is gone: all calls are answered with `why`.
  session_effects on_closed(const error& why);

  std::optional<steady_time> next_time() const;
  bool is_ready() const;
  bool is_over() const;
  /// Its list of tools is being read.
  bool is_listing() const;
  era_t era() const;
  const std::string& version() const;     ///< of the protocol; empty: not agreed yet
  const std::string& server_says() const; ///< name and version
  const std::vector<server_tool>& tools() const;
  bool has_resources() const;
  /// Calls under way and waiting.
  std::size_t calls() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace boyd::mcp
