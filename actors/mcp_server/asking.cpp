#include "actors/mcp_server/parts.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/mcp/form.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/queue/approvals.hpp"
#include "boyd/tools/describe.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace boyd::mcp_server_impl {

namespace {

/// How long a person has; the run's own time ends it earlier.
constexpr milliseconds question_lives = std::chrono::hours{24};
/// How often a question is put when what people say is no answer.
constexpr int most_tries = 3;

/// The second part of a run's ticket, dispatch/fence/step; 0: it is no run's.
std::int64_t fence_of(const std::string& ticket) {
  const auto first = ticket.find('/');
  if (first == std::string::npos)
    return 0;
  std::int64_t fence = 0;
  const auto* begin = ticket.data() + first + 1;
  const auto read = std::from_chars(begin, ticket.data() + ticket.size(), fence);
  return read.ec == std::errc{} ? fence : 0;
}

void answer_question(self_pointer self, std::uint64_t number, const mcp::question_answer& answer) {
  auto& s = self->state;
  s.questions.erase(number);
  if (s.session)
    perform(self, s.session->on_answer(number, answer, now_of(self)));
}

std::optional<std::uint64_t> number_of(const server_state& s, const std::string& wish) {
  for (const auto& [number, q] : s.questions)
    if (q.wish == wish)
      return number;
  return std::nullopt;
}

/// Why an approval with this note is no answer; empty: it is one.
std::string unfit(const asked_question& q, const std::string& note) {
  if (q.what.mode == "url")
    return {};
  const auto content = mcp::form_content(q.what.schema_json, note);
  return content ? std::string() : content.error().what;
}

/// A person has said yes, and it counts: what goes to the server.
mcp::question_answer accepted(const asked_question& q, const std::string& note) {
  if (q.what.mode == "url")
    return {"accept", {}};
  auto content = mcp::form_content(q.what.schema_json, note);
  return content ? mcp::question_answer{"accept", std::move(*content)}
                 : mcp::question_answer{"cancel", {}};
}

/// What a person reads. The server's words are redacted before they are laid out in lines of ours.
std::string shown(self_pointer self, mcp::question q) {
  q.message = told(self, q.message);
  q.schema_json = told(self, q.schema_json);
  return told(self, mcp::question_text(self->state.order.definition.name, q));
}

/// Puts it into the inbox, under an id of its own.
void put(self_pointer self, std::uint64_t number, asked_question q) {
  auto& s = self->state;
  const auto& ports = s.order.context->ports;
  q.wish = make_uuid_v7(ports.clock->now(), *ports.random);
  approval_wish wish;
  wish.ask.approval_id = q.wish;
  wish.ask.matter = q.matter;
  wish.ask.reason = "a tool server asks: " + s.order.definition.name;
  wish.ask.node_id = s.order.context->node_id;
  wish.ask.fence = q.fence;
  wish.ask.lives = question_lives;
  wish.wait = question_lives;
  if (q.what.mode != "url")
    wish.form_json = told(self, q.what.schema_json); // what is wrong is told with its words
  s.questions[number] = std::move(q);
  self->send(s.order.approvals,
             approval_request{{}, std::move(wish), approval_waiter_actor(server_impl(self))});
}

/// The node that a person decided at did not know the form: the question is put once more, with
/// what was wrong.
void ask_again(self_pointer self, std::uint64_t number, asked_question q, const std::string& why) {
  self->send(
      self->state.order.approvals,
      approval_withdrawal{{}, q.wish, told(self, "the previous answer was not valid: " + why)});
  if (++q.tries >= most_tries)
    return answer_question(self, number, {"cancel", {}});
  q.matter.shown =
      told(self, "The previous answer was not valid: " + tools::visible_text(why) + "\n") +
      shown(self, q.what);
  put(self, number, std::move(q));
}

} // namespace

void ask_person(self_pointer self, const mcp::effect::ask& e) {
  auto& s = self->state;
  const auto call = s.calls.find(e.what.call);
  const auto fence = call == s.calls.end() ? 0 : fence_of(call->first);
  if (fence == 0 || !s.order.approvals) {
    log_note(self, false,
             "declined a question for a person, because it belongs to no run: " + e.what.message);
    return answer_question(self, e.number, {"decline", {}});
  }
  const auto& what = call->second.what;
  asked_question q;
  q.what = e.what;
  q.fence = fence;
  q.matter.kernel_id = what.user.kernel_id;
  q.matter.agent_id = what.user.agent_id;
  q.matter.dispatch_id = what.dispatch_id;
  q.matter.tool = what.tool;
  q.matter.arguments_sha256 = sha256_hex(what.arguments_json);
  q.matter.workspace = what.user.workspace;
  q.matter.shown = shown(self, e.what);
  put(self, e.number, std::move(q));
}

void forget_question(self_pointer self, std::uint64_t number) {
  auto& s = self->state;
  const auto it = s.questions.find(number);
  if (it == s.questions.end())
    return;
  self->send(s.order.approvals,
             approval_withdrawal{{}, it->second.wish, "the server no longer waits for an answer"});
  s.questions.erase(it);
}

void on_word(self_pointer self, const approval_answer& m) {
  auto& s = self->state;
  const auto number = number_of(s, m.wish);
  if (!number)
    return;
  const auto q = s.questions.at(*number);
  switch (m.word) {
  case approval_word::asked:
    return;
  case approval_word::approved:
    if (const auto why = unfit(q, m.row.note); !why.empty())
      return ask_again(self, *number, q, why);
    self->send(s.order.approvals,
               approval_use_request{
                   {},
                   {m.wish, queue::approval_hash(m.row.approval_id, q.matter, m.row.expires_at)},
                   approval_waiter_actor(server_impl(self))});
    return;
  case approval_word::granted:
    answer_question(self, *number, accepted(q, m.row.note));
    break;
  case approval_word::denied:
    answer_question(self, *number, {"decline", {}});
    break;
  case approval_word::unanswered:
  case approval_word::held:
    answer_question(self, *number, {"cancel", {}});
    break;
  }
  look_again(self);
}

} // namespace boyd::mcp_server_impl
