#include "actors/context/core.hpp"
#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/send.hpp>

#include <utility>

/// What a run is given to read besides its prompt: read once, before its first attempt at the work.
namespace boyd::executing {

namespace {

context::depth depth_of(exec::context_level level) {
  switch (level) {
  case exec::context_level::focused:
    return context::depth::focused;
  case exec::context_level::minimal:
    return context::depth::minimal;
  case exec::context_level::full:
    break;
  }
  return context::depth::full;
}

} // namespace

void fill_block(self_pointer self) {
  auto& s = self->state;
  const auto& reads = s.order.agent->reads;
  s.block =
      context::make_block(s.items, {reads.budget_tokens, reads.strategy,
                                    depth_of(exec::level_for(s.order.work->row.attempts_json))});
}

namespace {

reading_task task_of(self_pointer self, std::string root, std::vector<context::wanted> wanted) {
  auto& s = self->state;
  reading_task task;
  task.context = s.order.context;
  task.configuration = s.order.configuration;
  task.agent = agent_now(s.order);
  task.who = identity_of(s.order, s.session_id);
  task.ranking = ranking_of(*s.order.configuration, task.who.kernel_id, task.who.dispatch_id);
  // Its temporary directory is not the run's own.
  task.who.dispatch_id += "-context";
  task.root = std::move(root);
  task.references = std::move(wanted);
  task.secrets = s.secrets;
  task.question = question_of_run(*s.order.agent, s.order.work->row.metadata_json);
  task.workspace = s.order.services.workspace;
  task.knowledge = s.order.services.knows();
  task.asker = self->address();
  return task;
}

void take_items(self_pointer self, result<context_items> r, const std::function<void()>& then) {
  auto& s = self->state;
  s.context_reader = nullptr;
  // What was cancelled meanwhile begins only to be ended.
  if (s.cancelled_early)
    return then();
  if (!r)
    return finish_unstarted(self, r.error(), failure_class::transient);
  s.items = std::move(r->items);
  s.known = std::move(r->known);
  s.skills = std::move(r->skills);
  s.skill_names = std::move(r->skill_names);
  fill_block(self);
  if (const auto missing = missing_items(s.items); !missing.empty()) {
    const auto& agent_id = s.order.work->row.agent_id;
    return finish_unstarted(self,
                            {errc::not_found, "cannot read required context: " + missing,
                             "agent " + agent_id, "boyd plan " + agent_id + " shows its context"},
                            failure_class::environment);
  }
  if (s.items.empty())
    return then(); // words that named nothing
  summarize_items(self, then);
}

} // namespace

std::string reading_root_of(self_pointer self) {
  const auto& order = self->state.order;
  return reading_root(*order.agent, order.context->kernel_home(order.work->row.kernel_id));
}

void gather_items(self_pointer self, std::string root, std::function<void()> go_on) {
  auto& s = self->state;
  // A run that was put off begins again with what it has read.
  if (s.has_gathered)
    return go_on();
  const std::function<void()> then = [self, go_on = std::move(go_on)] {
    self->state.has_gathered = true;
    go_on();
  };
  const auto& row = s.order.work->row;
  auto wanted = references_of_run(s.order.agent->reads, row.metadata_json);
  const auto recall = recalled_entries(*s.order.configuration, row.kernel_id, *s.order.agent);
  auto learning = learning_of(*s.order.configuration, row.kernel_id, *s.order.agent);
  if (wanted.empty() && recall == 0 && !learning)
    return then();
  s.root = root;
  auto task = task_of(self, std::move(root), std::move(wanted));
  task.recall = recall;
  task.learning = std::move(learning);
  if (task.references.empty() && task.question.empty())
    return then();
  s.question = task.recall == 0 ? std::string() : task.question;
  s.context_reader = spawn_context_reader(self->system(), std::move(task));
  ask<context_items>(
      self, s.context_reader, read_context{},
      [self, then](result<context_items> r) { take_items(self, std::move(r), then); },
      reading_limit());
}

void stop_gathering(self_pointer self) {
  if (const auto& reader = self->state.context_reader)
    self->send(reader, stop_reading{});
}

std::string prompt_of(self_pointer self) {
  const auto& s = self->state;
  const auto& row = s.order.work->row;
  return exec::make_attempt_prompt(row.prompt, row.metadata_json,
                                   exec::level_for(row.attempts_json), s.block.text, s.skills);
}

} // namespace boyd::executing
