#include "boyd/queue/approvals.hpp"

#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/describe.hpp"
#include "boyd/tools/policy.hpp"

#include <caf/send.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::executing {

namespace {

using json = nlohmann::json;

/// A file that cannot be read for so long is not asked about: its disk hangs.
constexpr milliseconds touch_patience = 2min;

/// A denial, or the word of a person, for the conversation.
void answer(self_pointer self, std::uint64_t number, bool approved, const std::string& why) {
  self->state.asked.reset();
  const auto text = config::redact_text(why, self->state.secrets);
  step(self, [&](exec::attempt_core& core, steady_time now) {
    return core.on_talk(
        [&](exec::chat_loop& loop) { return loop.on_approval(number, approved, text); }, now);
  });
}

void end_run(self_pointer self, std::uint64_t number, const std::string& why) {
  self->state.asked.reset();
  step(self, [&](exec::attempt_core& core, steady_time now) {
    return core.on_talk([&](exec::chat_loop& loop) { return loop.on_no_approval(number, why); },
                        now);
  });
}

void record(self_pointer self, std::uint64_t number, const char* what, const store::approval& row,
            const std::string& why) {
  json line{{"event", "approval"}, {"step", number},
            {"what", what},        {"approval_id", row.approval_id},
            {"hash", row.hash},    {"reason", why}};
  if (!row.decided_by.empty())
    line["by"] = row.decided_by;
  if (row.expires_at != utc_time{})
    line["expires_at"] = format_rfc3339(row.expires_at, true);
  note_turn(self, line.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// The file that the call would replace; empty: none.
std::string replaced_by(self_pointer self, const model::tool_call& call) {
  const auto read = tools::read_call(call.name, call.arguments);
  if (!read)
    return {};
  const auto* file = std::get_if<tools::file_call>(&*read);
  if (file == nullptr || !std::holds_alternative<tools::write_file_call>(*file))
    return {};
  const auto workspace = workspace_of(self->state.order);
  const auto action = tools::action_of(*read, workspace);
  return action ? workspace + "/" + action->path : std::string();
}

/// What the call is about to meet is part of what a person approves. The file is touched first
/// where a disk that hangs holds up nobody else.
template <class Done>
void look_before(self_pointer self, const model::tool_call& call, Done done) {
  const auto path = replaced_by(self, call);
  if (path.empty())
    return done(result<std::string>(std::string()));
  const auto& workspace = self->state.order.services.workspace;
  const auto root = workspace_of(self->state.order);
  tools::read_file_call touch;
  touch.path = path.substr(root.size() + 1);
  touch.limit = 1;
  const auto look = [self, workspace, path, done] {
    ask<workspace_reply>(self, workspace, workspace_request{{}, hash_inputs{{path}}},
                         [done](result<workspace_reply> r) {
                           done(r ? result<std::string>(std::move(r->text))
                                  : result<std::string>(fail(std::move(r.error()))));
                         });
  };
  ask<workspace_reply>(
      self, workspace,
      workspace_request{{}, boyd::run_tool{tools::file_call{std::move(touch)}, root, {}, {}}},
      [look, done](const result<workspace_reply>& r) {
        // What it said of the file does not matter: there may be none yet.
        if (r)
          look();
        else
          done(result<std::string>(fail(r.error())));
      },
      touch_patience);
}

store::approval_matter matter_of(self_pointer self, const model::tool_call& call,
                                 std::string before) {
  const auto& s = self->state;
  const auto& row = s.order.work->row;
  return {row.kernel_id,
          row.agent_id,
          row.dispatch_id,
          call.name,
          sha256_hex(call.arguments),
          workspace_of(s.order),
          std::move(before),
          config::redact_text(tools::describe_call(call.name, call.arguments), s.secrets)};
}

void send_wish(self_pointer self, store::approval_matter matter) {
  auto& s = self->state;
  const auto& terms = agent_now(s.order)->policy.approval;
  approval_wish wish;
  wish.ask.approval_id = s.asked->wish;
  wish.ask.matter = std::move(matter);
  wish.ask.reason = config::redact_text(s.asked->reason, s.secrets);
  wish.ask.node_id = s.order.context->node_id;
  wish.ask.fence = s.order.work->row.fence;
  wish.ask.lives = std::clamp<milliseconds>(terms.expires, 1s, queue::longest_approval);
  wish.wait = terms.wait;
  wish.hold = terms.ends_run;
  s.asked->ends_run = terms.ends_run;
  s.has_asked = true;
  self->send(s.order.services.approvals,
             approval_request{{}, std::move(wish), approval_waiter_actor(executor_impl(self))});
}

/// Whether the question is still the present one.
bool is_asked(self_pointer self, const std::string& wish) {
  return self->state.asked && self->state.asked->wish == wish;
}

/// What the policy says now: a person's yes does not stand above it.
std::string forbidden_now(self_pointer self, const model::tool_call& call) {
  const auto agent = agent_now(self->state.order);
  if (is_server_tool(call.name)) {
    auto j = judge_server_tool(call.name, server_hosts(self), *agent);
    return j.decision == config::policy_decision::deny ? std::move(j.reason) : std::string();
  }
  const auto read = tools::read_call(call.name, call.arguments);
  const auto action = read ? tools::action_of(*read, workspace_of(self->state.order))
                           : result<tools::action>(fail(read.error()));
  if (!action)
    return {};
  const auto d = tools::decide(*action, agent->policy, agent->tools);
  return d.what == config::policy_decision::deny ? d.reason : std::string();
}

void use(self_pointer self, const store::approval& row) {
  auto& s = self->state;
  s.asked->row = row;
  if (const auto why = forbidden_now(self, s.asked->call); !why.empty())
    return answer(self, s.asked->step, false, why);
  look_before(self, s.asked->call, [self, wish = s.asked->wish](result<std::string> before) {
    if (!is_asked(self, wish))
      return;
    auto& present = self->state;
    if (!before)
      return answer(self, present.asked->step, false,
                    "what would be replaced cannot be read: " + to_string(before.error()));
    // Made anew from what is about to be done.
    const auto matter = matter_of(self, present.asked->call, std::move(*before));
    const auto& approved = *present.asked->row;
    self->send(present.order.services.approvals,
               approval_use_request{
                   {},
                   {wish, queue::approval_hash(approved.approval_id, matter, approved.expires_at)},
                   approval_waiter_actor(executor_impl(self))});
  });
}

} // namespace

void ask_person(self_pointer self, const exec::effect::ask_person& question) {
  auto& s = self->state;
  s.asked = asked_action{
      question.step,
      question.call,
      make_uuid_v7(s.order.context->ports.clock->now(), *s.order.context->ports.random),
      question.reason,
      std::nullopt,
      false};
  if (!s.order.services.approvals)
    return answer(self, question.step, false, "nobody can be asked here");
  look_before(self, question.call, [self, wish = s.asked->wish](result<std::string> before) {
    if (!is_asked(self, wish))
      return;
    auto& present = *self->state.asked;
    if (!before)
      return answer(self, present.step, false,
                    "what would be replaced cannot be read: " + to_string(before.error()));
    auto matter = matter_of(self, present.call, std::move(*before));
    if (matter.shown.size() > queue::most_shown_bytes)
      return answer(self, present.step, false,
                    "a person would have to read " + std::to_string(matter.shown.size()) +
                        " bytes to decide about this; at most " +
                        std::to_string(queue::most_shown_bytes) +
                        " are asked for: make it in smaller steps");
    send_wish(self, std::move(matter));
  });
}

void on_approval_answer(self_pointer self, const approval_answer& m) {
  if (!is_asked(self, m.wish))
    return;
  const auto number = self->state.asked->step;
  const bool ends_run = self->state.asked->ends_run;
  const auto& row = m.row;
  switch (m.word) {
  case approval_word::asked:
    return record(self, number, "asked", row, row.reason);
  case approval_word::approved:
    record(self, number, "approved", row, m.why);
    return use(self, row);
  case approval_word::granted:
    record(self, number, "used", row, m.why);
    return answer(self, number, true, m.why);
  case approval_word::denied:
    record(self, number, "denied", row, m.why);
    return answer(self, number, false, m.why);
  case approval_word::held:
    record(self, number, "held", row, m.why);
    return end_run(self, number,
                   "an action waits for a person: boyd approvals show " + row.approval_id +
                       "; when it is approved: boyd dispatches retry " + row.matter.dispatch_id);
  case approval_word::unanswered:
    record(self, number, "unanswered", row, m.why);
    if (ends_run)
      return end_run(self, number, "an action needed a person's word, and nobody gave it");
    return answer(self, number, false, m.why);
  }
}

void forget_question(self_pointer self, std::uint64_t number) {
  if (self->state.asked && self->state.asked->step == number)
    self->state.asked.reset();
}

void end_approvals(self_pointer self) {
  auto& s = self->state;
  if (!std::exchange(s.has_asked, false))
    return;
  const auto& row = s.order.work->row;
  caf::anon_send(
      s.order.services.approvals,
      approval_end{{}, {row.dispatch_id, row.fence}, approval_waiter_actor(executor_impl(self))});
}

} // namespace boyd::executing
