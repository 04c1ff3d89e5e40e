#pragma once

#include "actors/mcp_server/actor.hpp"
#include "actors/mcp_server/inlet.hpp"
#include "boyd/mcp/http_link.hpp"
#include "boyd/mcp/line_reader.hpp"
#include "boyd/mcp/session.hpp"
#include "boyd/mcp/trust.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Private to actors/mcp_server: what its files share.
namespace boyd::mcp_server_impl {

/// The pool may have to read files before it answers.
inline constexpr milliseconds owner_patience = 30s;

/// Something has come from the server.
struct inlet_ready : message {};

/// Time may have brought something. `number`: an old one does nothing.
struct server_tick : message {
  std::uint64_t number = 0;
};

using server_impl =
    mcp_server_actor::extend<caf::reacts_to<inlet_ready>, caf::reacts_to<server_tick>,
                             caf::reacts_to<approval_answer>>;

using tools_promise = caf::typed_response_promise<result<server_tools>>;
using call_promise = caf::typed_response_promise<result<mcp_call_reply>>;

/// A call that is not answered.
struct open_call {
  call_promise promise;
  mcp_call what;
  bool sent = false; ///< false: it waits until the tools are known
  mcp::offered_tool::kind_t kind = mcp::offered_tool::kind_t::tool;
};

/// A question of the server that waits for a person.
struct asked_question {
  mcp::question what;
  std::string wish; ///< its id in the inbox
  store::approval_matter matter;
  std::int64_t fence = 0; ///< of the run
  int tries = 0;          ///< answers that were no answer
};

/// Lines of the log that a server causes: no more than a bound in a minute.
struct said_lines {
  int count = 0;
  steady_time since{};
};

/// How far an ordered end has come.
enum class ending : std::uint8_t { no, closed, terminated, killed };

struct server_state {
  mcp_server_order order;
  std::shared_ptr<inlet> in;
  std::optional<mcp::session> session;
  std::optional<mcp::http_link> link;
  mcp::line_reader lines;
  std::optional<process_handle> process;
  std::optional<steady_time> unreported; ///< it has ended, as its runner says: for a word of it
  std::string sandbox;                   ///< what the process is kept in, in words
  std::string scratch;                   ///< its temporary directory; empty: none
  std::map<std::uint64_t, http_handle> exchanges;
  std::vector<mcp::offered_tool> tools;
  mcp::pinned_tools pinned;  ///< the server's own tools, by its pins
  mcp::trusted_server first; ///< its tools as they were at the start: without pins a change is told
  bool usable = false;       ///< ready, and its tools may be used
  std::string refused;       ///< why they may not be
  std::vector<tools_promise> askers;
  std::map<std::string, open_call> calls;            ///< by ticket
  std::map<std::uint64_t, asked_question> questions; ///< by the session's number
  std::uint64_t requests = 0;
  steady_time used_at{};
  // An address that does not answer.
  int failures = 0;
  steady_time not_before{};
  std::string problem; ///< why it is not ready; empty: nothing is wrong
  // What it writes to stderr.
  std::string err_line;
  std::string err_tail;
  said_lines err_lines;
  said_lines notes; ///< what it says, and what is odd about it
  // The end.
  ending stage = ending::no;
  steady_time next_stage{};
  std::uint64_t ticks = 0;
  std::optional<steady_time> tick_at;
  static inline const char* name = "mcp_server";

  ~server_state();
};

using self_pointer = server_impl::stateful_pointer<server_state>;

inline steady_time now_of(self_pointer self) {
  return self->state.order.context->ports.clock->steady();
}

// actor.cpp
/// Redacted, for the log and for people.
std::string told(self_pointer self, const std::string& text);
/// The same for words of the server that may be cut at their end.
std::string told_cut(self_pointer self, const std::string& text);
/// Whether one more line may go to the log in this minute. What was left out is said later; `what`:
/// a word for it.
bool may_log(self_pointer self, said_lines& lines, const char* what);
/// Something that the server caused, for the log.
void log_note(self_pointer self, bool warn, const std::string& text);
void perform(self_pointer self, mcp::session_effects effects);
/// The conversation is over; calls are answered already.
void lost(self_pointer self, const error& why);
/// Looks again when the session, the link or an idle time wants it.
void look_again(self_pointer self);

// asking.cpp
/// Puts the question into the inbox of what people decide, for the run that makes the call.
void ask_person(self_pointer self, const mcp::effect::ask& e);
/// Nobody waits for its answer any more: the request is withdrawn.
void forget_question(self_pointer self, std::uint64_t number);
void on_word(self_pointer self, const approval_answer& m);

// transport.cpp
/// Starts the process, or makes the link; the session's first words follow.
void connect(self_pointer self);
void send(self_pointer self, const mcp::effect::send& e);
/// The temporary directory of a process that has ended.
void remove_scratch(server_state& s);
void abandon(self_pointer self, std::int64_t id);
void perform_http(self_pointer self, mcp::http_effects effects);
void take_in(self_pointer self);
/// A process that has ended although nobody said so is gone, too.
void look_for_lost_end(self_pointer self);
/// Closes the connection to an address.
void disconnect(self_pointer self);
/// The beginning of an ordered end; true: something of it is still to be waited for.
bool say_goodbye(self_pointer self);
/// The next step of an ordered end, when it is time.
void end_process(self_pointer self);

} // namespace boyd::mcp_server_impl
