#include "boyd/queue/approvals.hpp"

#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/mcp/trust.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/describe.hpp"
#include "boyd/tools/file_prints.hpp"
#include "boyd/tools/policy.hpp"
#include "boyd/tools/tree_print.hpp"

#include <caf/send.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::executing {

namespace {

using json = nlohmann::json;

/// Between the reason and what a person should know besides: what is not part of the request, and
/// what has changed since one that was approved.
constexpr const char* not_bound = "; the approval does not cover file contents: ";
constexpr const char* asked_anew =
    "; asked again, because these files changed after the approval: ";
/// Files that cannot be read for so long are not asked about: their disk hangs.
constexpr milliseconds look_patience = 2min;

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

/// What a call is about to meet.
struct meeting {
  std::vector<std::string> paths; ///< absolute, below the workspace
  bool replaces = false;          ///< the one path is a file that is written
  bool all = false;               ///< whatever is in the workspace: it is a command
};

/// The file that is written, or those that a command's words name.
meeting met_by(self_pointer self, const model::tool_call& call) {
  const auto read = tools::read_call(call.name, call.arguments);
  if (!read)
    return {};
  const auto workspace = workspace_of(self->state.order);
  const auto action = tools::action_of(*read, workspace);
  if (!action)
    return {};
  if (const auto* command = std::get_if<tools::run_command_call>(&*read)) {
    config::mcp_server words;
    words.command = command->argv.empty() ? "/bin/sh" : command->argv.front();
    if (command->argv.empty())
      words.args = {command->command};
    else
      words.args.assign(command->argv.begin() + 1, command->argv.end());
    const auto cwd = workspace_path(workspace, command->cwd);
    return {mcp::named_paths(words, workspace + "/" + cwd.value_or("."), workspace), false, true};
  }
  if (call.name != tools::write_file_name)
    return {};
  return {{workspace + "/" + action->path}, true};
}

struct looked {
  std::string hash;                  ///< of all; empty: nothing is met
  std::optional<std::string> before; ///< tools::permission::before
  std::vector<tools::file_print> prints{};
  std::string words{};   ///< what of the contents is bound, for the person; empty: no command
  std::string unbound{}; ///< why the workspace as a whole is not; empty: it is
};

/// Names of a list that is too long to be shown, and characters of one.
constexpr std::size_t most_named = 10;
constexpr std::size_t longest_name = 120;

std::string named(const std::vector<std::string>& all) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i) {
    const auto name = tools::visible_text(all[i]);
    const std::string shown(cut_characters(name, longest_name));
    out += (i == 0 ? "" : ", ") + shown + (shown.size() < name.size() ? "…" : "");
  }
  return all.size() > most_named ? out + " and " + std::to_string(all.size() - most_named) + " more"
                                 : out;
}

/// What a person is told of the contents that a command may meet.
void tell_contents(looked& out, const tools::tree_print& tree) {
  if (!tree.too_much.empty()) {
    out.unbound = "the workspace has " + tree.too_much;
    out.words = "FILE CONTENTS NOT COVERED: " + out.unbound +
                ". Only the files named in the command are checked, so other code may run than you "
                "see now (exclude build output with policy.approval.unbound)\n\n";
    return;
  }
  // No figures: the words are part of what is approved, and STATE.md grows with each cycle.
  out.words = "contents: this approval covers all files of the workspace; if one changes, the "
              "approval is void\n";
  if (!tree.outside.empty())
    out.words +=
        "NOT COVERED (outside the workspace, or unreadable): " + named(tree.outside) + "\n";
  out.words += "\n";
}

result<looked> looked_of(const meeting& what, const result<workspace_reply>& r) {
  if (!r)
    return fail(r.error());
  looked out;
  out.prints = r->prints;
  if (r->tree) {
    tell_contents(out, *r->tree);
    if (out.unbound.empty())
      out.prints.insert(out.prints.end(), r->tree->prints.begin(), r->tree->prints.end());
  }
  out.hash = std::string(out.unbound.empty() ? std::string_view() : queue::unbound_mark) +
             tools::hash_of(out.prints);
  if (!what.replaces)
    return out;
  const auto& print = r->prints.front();
  if (print.state.starts_with("size:"))
    return fail(errc::limit_exceeded,
                "the file has more than " + std::to_string(tools::print_bytes >> 20) + " MiB");
  out.before = tools::content_hash(print);
  return out;
}

/// What the call is about to meet is part of what a person approves. It is looked at where the tool
/// itself would meet it, so that a disk that hangs holds up nobody else.
template <class Done>
void look_before(self_pointer self, const model::tool_call& call, Done done) {
  auto what = met_by(self, call);
  if (what.paths.empty() && !what.all)
    return done(result<looked>(looked{}));
  look_at_workspace look{workspace_of(self->state.order), what.paths};
  if (what.all)
    look.tree_without = agent_now(self->state.order)->policy.approval.unbound;
  ask<workspace_reply>(
      self, self->state.order.services.workspace, workspace_request{{}, std::move(look)},
      [what, done](const result<workspace_reply>& r) { done(looked_of(what, r)); }, look_patience);
}

store::approval_matter matter_of(self_pointer self, const model::tool_call& call,
                                 std::string before, std::string shown) {
  const auto& s = self->state;
  const auto& row = s.order.work->row;
  return {row.kernel_id,
          row.agent_id,
          row.dispatch_id,
          call.name,
          sha256_hex(call.arguments),
          workspace_of(s.order),
          std::move(before),
          std::move(shown)};
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

/// What is not as it was when the person was asked, in words.
std::vector<std::string> changes_since(self_pointer self,
                                       const std::vector<tools::file_print>& now) {
  const auto begin = workspace_of(self->state.order) + "/";
  auto paths = tools::changed_paths(self->state.asked->met, now);
  for (auto& path : paths)
    if (path.starts_with(begin))
      path.erase(0, begin.size());
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void use(self_pointer self, const store::approval& row) {
  auto& s = self->state;
  s.asked->row = row;
  if (const auto why = forbidden_now(self, s.asked->call); !why.empty())
    return answer(self, s.asked->step, false, why);
  look_before(self, s.asked->call, [self, wish = s.asked->wish](result<looked> before) {
    if (!is_asked(self, wish))
      return;
    auto& present = self->state;
    if (!before)
      return answer(self, present.asked->step, false,
                    "cannot check the files of the action: " + to_string(before.error()));
    present.asked->before = std::move(before->before);
    present.asked->changed = changes_since(self, before->prints);
    if (!before->words.empty())
      present.bound = bound_command{present.asked->step, before->hash, before->prints};
    // Made anew from what is about to be done.
    const auto& call = present.asked->call;
    const auto matter = matter_of(
        self, call, std::move(before->hash),
        before->words + tools::show_call(call.name, call.arguments, present.secrets).text);
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
      std::nullopt,
      false};
  if (!s.order.services.approvals)
    return answer(self, question.step, false, "no person can be asked here");
  auto shown = tools::show_call(question.call.name, question.call.arguments, s.secrets);
  if (!shown.refused.empty())
    return answer(self, question.step, false, shown.refused);
  look_before(
      self, question.call,
      [self, wish = s.asked->wish, text = std::move(shown.text)](result<looked> before) {
        if (!is_asked(self, wish))
          return;
        auto& present = *self->state.asked;
        if (!before)
          return answer(self, present.step, false,
                        "cannot check the files of the action: " + to_string(before.error()));
        present.met = before->prints;
        if (!before->unbound.empty())
          present.reason += not_bound + before->unbound;
        auto matter = matter_of(self, present.call, std::move(before->hash), before->words + text);
        if (matter.shown.size() > queue::most_shown_bytes)
          return answer(self, present.step, false,
                        "the request is too long to review: " +
                            std::to_string(matter.shown.size()) + " bytes, at most " +
                            std::to_string(queue::most_shown_bytes) + "; use smaller steps");
        send_wish(self, std::move(matter));
      });
}

namespace {

/// The workspace of a command that a person decides about may change for ever.
constexpr int most_asked_again = 3;

/// Only about a command: a file that has changed is for the model to read again.
bool may_ask_anew(const executor_state& s) {
  return s.bound && !s.asked->changed.empty() && s.asked->asked_again < most_asked_again;
}

/// What was approved is not what is there now: the person decides about that, too.
void ask_anew(self_pointer self) {
  const auto earlier = *self->state.asked;
  auto reason = earlier.reason.substr(0, earlier.reason.find(not_bound));
  reason.erase(std::min(reason.find(asked_anew), reason.size()));
  ask_person(self,
             {earlier.step, earlier.call, std::move(reason) + asked_anew + named(earlier.changed)});
  if (self->state.asked)
    self->state.asked->asked_again = earlier.asked_again + 1;
}

} // namespace

void check_bound(self_pointer self, std::uint64_t step, const model::tool_call& call,
                 std::function<void()> start) {
  look_before(self, call, [self, step, start = std::move(start)](const result<looked>& now) {
    const auto& bound = self->state.bound;
    if (self->state.over || !bound || bound->step != step)
      return;
    if (now && now->hash == bound->hash) {
      self->state.bound.reset();
      return start();
    }
    const auto what = now ? "files have changed since the command was approved: " +
                                named(tools::changed_paths(bound->met, now->prints))
                          : "cannot check the files of the action: " + to_string(now.error());
    self->state.bound.reset();
    executing::step(self, [&](exec::attempt_core& core, steady_time at) {
      return core.on_talk(
          [&](exec::chat_loop& loop) {
            return loop.on_tool_result(step, what + "; nothing was run", true);
          },
          at);
    });
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
    if (self->state.asked->before)
      self->state.replaces.emplace(number, std::move(*self->state.asked->before));
    return answer(self, number, true, m.why);
  case approval_word::denied:
    record(self, number, "denied", row, m.why);
    if (may_ask_anew(self->state))
      return ask_anew(self);
    return answer(self, number, false, m.why);
  case approval_word::held:
    record(self, number, "held", row, m.why);
    return end_run(self, number,
                   "an action needs approval: boyd approvals show " + row.approval_id +
                       "; once approved: boyd dispatches retry " + row.matter.dispatch_id);
  case approval_word::unanswered:
    record(self, number, "unanswered", row, m.why);
    if (ends_run)
      return end_run(self, number, "an action needed approval, but no decision was made");
    return answer(self, number, false, m.why);
  }
}

void forget_question(self_pointer self, std::uint64_t number) {
  if (self->state.asked && self->state.asked->step == number)
    self->state.asked.reset();
  if (self->state.bound && self->state.bound->step == number)
    self->state.bound.reset();
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
