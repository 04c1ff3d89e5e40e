#pragma once

#include "boyd/mcp/session.hpp"
#include "json.hpp"

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boyd::mcp {

/// A request that waits for its answer.
struct open_request {
  enum class kind_t : std::uint8_t { discover, initialize, tools, call, listen };
  kind_t kind = kind_t::call;
  std::string key; ///< of the call
  steady_time deadline{};
  int greeting = 0; ///< the handshake that it was sent after
};

/// A call from its first request to its last answer.
struct open_call {
  server_call what;
  std::optional<std::int64_t> request; ///< nothing: it waits, or people are asked
  steady_time deadline{};
  steady_time longest{}; ///< progress does not keep it alive beyond that
  int rounds = 0;
  bool sent_again = false; ///< the server had forgotten the session that it was first sent in
  /// Of the present round: what people are asked, and what they have answered.
  std::map<std::uint64_t, std::string> asked; ///< question → name in inputRequests
  json answers = json::object();
  std::size_t questions = 0;        ///< of all rounds
  bool gathering = false;           ///< not all of its questions are asked yet
  std::optional<std::string> state; ///< requestState, to be sent back as it came
};

/// A question under way.
struct open_question {
  std::string call;              ///< key; empty: of no call that is known
  std::optional<rpc_id> request; ///< of the server, in the handshake era
  steady_time deadline{};
};

struct session::impl {
  enum class phase : std::uint8_t { fresh, probing, greeting, listing, ready, over };

  explicit impl(session_options all) : o(std::move(all)) {}

  session_options o;
  phase now_in = phase::fresh;
  era_t era = era_t::unknown;
  std::string version;
  std::string says;
  bool tools_capability = false;
  bool tools_tell = false; ///< listChanged
  bool resources_capability = false;
  steady_time connect_by{};
  std::optional<steady_time> probe_until; ///< then the handshake is tried as well
  int discoveries = 0;
  std::int64_t last_id = 0;
  int greetings = 0; ///< handshakes so far
  std::uint64_t last_question = 0;
  std::map<std::int64_t, open_request> requests;
  std::map<std::string, open_call> calls;
  std::deque<std::string> waiting; ///< keys of calls that were made too early
  call_judge judge;                ///< of the present list of tools; empty: nobody looked at it yet
  bool list_in_doubt = false;      ///< the server says that its tools have changed
  std::map<std::uint64_t, open_question> questions;
  std::vector<server_tool> tools;
  // The list that is being read.
  bool listing = false;
  bool list_again = false; ///< it changed meanwhile
  std::vector<server_tool> page_tools;
  std::vector<std::string> cursors;
  std::size_t page_bytes = 0;
  std::optional<steady_time> old_from;  ///< the list is read again when it is wanted after that
  std::optional<steady_time> listen_at; ///< the stream of changes is opened again
  int odd_messages = 0;
  session_effects out;

  // session.cpp
  session_effects take() { return std::exchange(out, {}); }
  void note(bool warn, std::string text);
  void fail_all(const error& why);
  void fail_session(error why);
  std::int64_t request(open_request r, const std::string& method, json params,
                       const std::string& name, steady_time now);
  void notify(const std::string& method, json params);
  void respond(const rpc_id& id, json result);
  void refuse(const rpc_id& id, std::int64_t code, const std::string& why);
  json client_info() const;
  json capabilities() const;
  void on_one(const rpc_message& m, steady_time now, std::optional<std::int64_t> via);
  void on_response(const rpc_response& r, steady_time now, std::optional<std::int64_t> via);
  void on_notification(const rpc_notification& n, steady_time now);
  void on_request(const rpc_request& r, steady_time now, std::optional<std::int64_t> via);
  void on_text(std::string_view text, steady_time now, std::optional<std::int64_t> via);
  bool end_unread(std::int64_t id, error why, steady_time now);
  std::optional<std::int64_t> only_request(std::optional<std::int64_t> via) const;
  void odd(const std::string& what);

  // session_connect.cpp
  void discover(steady_time now);
  void initialize(steady_time now);
  void greet_again(steady_time now);
  void on_discovered(const json& result, steady_time now);
  void on_discover_error(const rpc_error& e, steady_time now);
  void choose(const std::vector<std::string>& offered, steady_time now);
  void on_initialized(const json& result, steady_time now);
  void read_capabilities(const json& result);
  void list_tools(steady_time now, const std::string& cursor = {});
  void on_tools(const json& result, steady_time now);
  void tools_complete(int ttl_ms, steady_time now);
  void end_listing(steady_time now);
  void listen(steady_time now);

  // session_calls.cpp
  /// Whether calls have to wait until the list of tools is known and looked at.
  bool must_wait() const;
  void start_call(const std::string& key, steady_time now);
  void start_waiting(steady_time now);
  void on_call_result(const std::string& key, std::string result_json, steady_time now);
  void on_input_required(const std::string& key, const json& result, steady_time now);
  void round_complete(const std::string& key, steady_time now);
  void finish_call(const std::string& key, result<std::string> r);
  void allow_time(open_call& c, steady_time now);
  void on_progress(const json& params, steady_time now);
  void on_session_gone(open_call& c, int greeting, steady_time now);
  void drop_call(const std::string& key, const std::string& why, steady_time now);
  void ask(const std::string& call, std::optional<rpc_id> request, const std::string& input,
           const json& params, steady_time now);
  void answered(std::uint64_t number, const question_answer& a, steady_time now);
};

} // namespace boyd::mcp
