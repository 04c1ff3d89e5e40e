#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/exec/turn_words.hpp"

#include <caf/send.hpp>

#include <utility>

/// What a conversation said and did, line for line, in executions/ID/turns-FENCE.jsonl.
namespace boyd::executing {

namespace {

/// Lines wait for each other up to so many bytes.
constexpr std::size_t turn_lines_bytes = 64u << 10;

workspace_request next_lines(executor_state& s) {
  const auto& row = s.order.work->row;
  return {{},
          append_record{s.order.context->layout().turns(row.dispatch_id, row.fence),
                        std::exchange(s.turn_lines, {})}};
}

void go_on(self_pointer self) {
  auto held = std::exchange(self->state.held_step, std::nullopt);
  if (held)
    held->go(self->state.record_trouble);
}

/// In the order in which they were sent: the answer to the last tells of the last line.
void on_written(self_pointer self, const result<workspace_reply>& r) {
  auto& s = self->state;
  s.record_trouble = r ? std::nullopt : std::optional(r.error());
  if (--s.records_under_way == 0)
    go_on(self);
}

void write_turns(self_pointer self) {
  auto& s = self->state;
  // Without tools there is no action that would wait for it; a reload may bring some.
  if (s.order.agent->tools.empty() && agent_now(s.order)->tools.empty()) {
    caf::anon_send(s.order.services.workspace, next_lines(s));
    return;
  }
  ++s.records_under_way;
  ask<workspace_reply>(self, s.order.services.workspace, next_lines(s),
                       [self](const result<workspace_reply>& r) { on_written(self, r); });
}

} // namespace

void note_turn(self_pointer self, const std::string& json) {
  auto& s = self->state;
  const bool begins = s.turns_noted++ == 0;
  if (s.order.services.watchers())
    if (const auto words = exec::turn_in_words(config::redact_text(json, s.secrets));
        !words.text.empty())
      tell_progress(self, words.is_delay ? "wait" : "run", words.text);
  s.turn_lines += conversing::record_line(*s.order.context, json, s.secrets);
  // What a run has to say that only waits comes with its next line: ten thousand of them must not
  // cost ten thousand files at once.
  if (!begins || s.turn_lines.size() >= turn_lines_bytes)
    write_turns(self);
}

void when_recorded(self_pointer self, std::uint64_t step, record_waiter go) {
  self->state.held_step = held_step{step, std::move(go)};
  if (self->state.records_under_way == 0)
    go_on(self);
}

void leave_turns(self_pointer self) {
  auto& s = self->state;
  // Nobody is left to wait for it: a record that cannot be written is in the workspace's health.
  if (!s.turn_lines.empty())
    caf::anon_send(s.order.services.workspace, next_lines(s));
}

} // namespace boyd::executing
