#include "actors/context/actor.hpp"

#include "actors/context/core.hpp"
#include "actors/program/program.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/context/reading.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/skills/bank.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace boyd {

namespace {

/// A worker of the file tools with too much to do is asked again after this long, and up to as long
/// again.
constexpr milliseconds ask_again = 200ms;
/// A workspace that has not answered for so long hangs.
constexpr milliseconds file_patience = 2min;

struct read_again : message {};

using reader_impl =
    context_reader_actor::extend<caf::reacts_to<read_again>, caf::reacts_to<program_ended>,
                                 caf::reacts_to<program_look>>;
using reader_promise = caf::typed_response_promise<result<context_items>>;

struct reader_state {
  reading_task task;
  reader_promise promise;
  std::vector<context::offered_item> items;
  std::vector<context_command> commands;
  std::vector<banked_item> bank; ///< that may be of the run's scope
  std::string skills;
  std::vector<std::string> skill_names;
  std::size_t next = 0;             ///< of the commands
  std::unique_ptr<program> running; ///< the command before it; killed with this object
  std::string scratch;              ///< its temporary directory
  steady_time began{};
  bool over = false;
  static inline const char* name = "context_reader";
};

using self_pointer = reader_impl::stateful_pointer<reader_state>;

steady_time now_of(self_pointer self) {
  return self->state.task.context->ports.clock->steady();
}

/// The last thing it does.
void finish(self_pointer self, result<context_items> reply) {
  auto& s = self->state;
  if (std::exchange(s.over, true))
    return;
  s.running.reset();
  if (s.promise.pending())
    s.promise.deliver(std::move(reply));
  self->quit();
}

void run_next(self_pointer self);

/// What the run's executor gives its own programs.
config::command_executor surroundings_of(const reading_task& task) {
  config::command_executor around;
  if (const auto* command = std::get_if<config::command_executor>(&task.agent->run)) {
    around.env = command->env;
    around.env_pass = command->env_pass;
  }
  around.cwd = task.root;
  return around;
}

/// What a model drives is always in its sandbox.
bool is_confined(const config::agent& agent) {
  return agent.sandbox.commands || std::holds_alternative<config::chat_executor>(agent.run) ||
         std::holds_alternative<config::agent_cli_executor>(agent.run);
}

result<process_spec> process_of(const reading_task& task, const std::vector<std::string>& argv) {
  auto process =
      exec::build_check(argv, surroundings_of(task), task.who, task.context->environment);
  if (!process || !is_confined(*task.agent))
    return process;
  exec::sandbox_places places{{process->cwd},
                              {task.who.kernel_home},
                              exec::hidden_from_agents(*task.configuration, task.who.home),
                              exec::read_only_for_agents(*task.configuration, task.who.home)};
  const auto report = exec::confine(*process, task.agent->sandbox,
                                    task.context->ports.processes->sandbox(), places, task.who);
  if (!report)
    return fail(report.error());
  return process;
}

/// One command's output, or why there is none.
void take(self_pointer self, const result<program_outcome>& outcome) {
  auto& s = self->state;
  auto& item = s.items[s.commands[s.next - 1].item];
  const auto hidden = [&](std::string text) {
    return config::redact_text(std::move(text), s.task.secrets);
  };
  if (!outcome)
    item.failure = hidden(to_string(outcome.error()));
  else if (auto problem = problem_of(*outcome); !problem.empty())
    item.failure = hidden(std::move(problem));
  else
    context::take_output(item, hidden(outcome->output), s.task.context->ports.clock->now());
}

void command_over(self_pointer self, const result<program_outcome>& outcome) {
  auto& s = self->state;
  s.running.reset();
  if (!s.scratch.empty())
    exec::remove_scratch(*s.task.context->ports.processes, std::exchange(s.scratch, {}));
  if (s.over)
    return;
  take(self, outcome);
  run_next(self);
}

void look_at_command(self_pointer self, std::uint64_t number) {
  auto& s = self->state;
  if (!s.running || number != s.next)
    return;
  if (auto again = s.running->look(now_of(self)))
    self->delayed_send(self, *again, program_look{{}, number});
  else
    command_over(self, fail(std::move(again.error())));
}

void run(self_pointer self, process_spec process) {
  auto& s = self->state;
  s.scratch = process.sandbox ? process.sandbox->scratch : std::string();
  program_order order{std::move(process), context_command_timeout, context_output_bytes};
  order.points = run_points;
  s.running = std::make_unique<program>(s.task.context->ports.processes, std::move(order),
                                        now_of(self), program::tells(self->address(), s.next));
  look_at_command(self, s.next);
}

// -- what is found
// ---------------------------------------------------------------------------------

/// What they are worth, by what the log says of them.
void rate_items(self_pointer self) {
  std::vector<std::string> ids;
  for (auto& i : self->state.items) {
    ids.push_back(i.id);
    // The words of a command may hold a secret; it has run with them.
    for (auto* text : {&i.path, &i.failure})
      *text = config::redact_text(std::move(*text), self->state.task.secrets);
  }
  const auto done = [self](std::map<std::string, context::item_statistics> known) {
    auto& items = self->state.items;
    context::rate(
        items,
        [&](const std::string& id) {
          const auto it = known.find(id);
          return it == known.end() ? std::nullopt : std::optional(it->second);
        },
        self->state.task.context->ports.clock->now(), self->state.task.ranking);
    auto& s = self->state;
    finish(
        self,
        context_items{
            {}, std::move(items), std::move(known), std::move(s.skills), std::move(s.skill_names)});
  };
  if (ids.empty() || !self->state.task.knowledge)
    return done({});
  ask<knowledge_reply>(
      self, self->state.task.knowledge, knowledge_request{{}, know_items{std::move(ids)}},
      [self, done](result<knowledge_reply> r) {
        if (self->state.over)
          return;
        if (!r)
          spdlog::warn("context of {}: cannot look up earlier use, so all items count as new: {}",
                       self->state.task.who.agent_id, to_string(r.error()));
        done(r ? std::move(r->items) : decltype(r->items){});
      });
}

/// As a prompt shows it.
std::string text_of(const memory_row& row) {
  constexpr std::size_t day_characters = 10;
  return "[" + format_rfc3339(row.time).substr(0, day_characters) + "] " +
         (row.author.empty() ? "" : row.author + ": ") + row.text;
}

/// Where it stands, and which one there it is.
std::string path_of(const memory_row& row) {
  constexpr std::size_t short_id = 8;
  const auto tail = row.id.substr(row.id.size() - std::min(row.id.size(), short_id));
  return row.file + "#" + (row.key.empty() ? row.section + "/" + tail : row.key);
}

context::offered_item item_of(const recalled_row& r, const std::vector<std::string>& secrets) {
  context::offered_item i;
  i.id = r.row.id;
  i.path = path_of(r.row);
  i.type = context::item_type::generated;
  i.about = context::semantic::doc;
  i.from = context::origin::memory;
  i.content = config::redact_text(text_of(r.row), secrets);
  i.content_hash = sha256_hex(i.content);
  i.score = r.score;
  i.time = r.row.time;
  return i;
}

/// The entries of the kernel's memory that fit the question best.
void recall_entries(self_pointer self) {
  const auto& task = self->state.task;
  if (task.recall == 0 || task.question.empty() || !task.knowledge)
    return rate_items(self);
  recall_memory what{task.who.kernel_id,
                     {{task.question, {}}},
                     task.agent->reads.budget_tokens,
                     task.recall,
                     task.ranking};
  ask<knowledge_reply>(self, task.knowledge, knowledge_request{{}, std::move(what)},
                       [self](const result<knowledge_reply>& r) {
                         auto& s = self->state;
                         if (s.over)
                           return;
                         // It helps where it is; a run goes on without it, and its report says so.
                         if (!r) {
                           auto& missing = s.items.emplace_back();
                           missing.id =
                               context::item_id(context::scope_of_kernel(s.task.who.kernel_id),
                                                context::item_type::generated, "memory");
                           missing.path = "memory";
                           missing.type = context::item_type::generated;
                           missing.from = context::origin::memory;
                           missing.failure = to_string(r.error());
                         } else if (!r->answers.empty()) {
                           // What fits in nothing is no answer.
                           for (const auto& row : r->answers.front())
                             if (row.score > 0)
                               s.items.push_back(item_of(row, s.task.secrets));
                         }
                         rate_items(self);
                       });
}

void run_next(self_pointer self) {
  auto& s = self->state;
  while (s.next < s.commands.size()) {
    const auto& command = s.commands[s.next++];
    auto& item = s.items[command.item];
    if (now_of(self) - s.began > context_patience) {
      item.failure =
          "not run: reading the context took longer than " + format_duration(context_patience);
      continue;
    }
    auto process = process_of(s.task, command.argv);
    if (process)
      return run(self, std::move(*process));
    item.failure = to_string(process.error());
  }
  recall_entries(self);
}

/// The references that read items of the bank again.
void add_banked(reading_task& task, const std::vector<banked_item>& bank) {
  for (const auto& b : bank)
    if (auto what = skills::reference_of(b.item))
      task.references.push_back({std::move(*what), context::origin::bank, false, false, false});
}

void read_files(self_pointer self);

/// What the kernel has learned. It helps where it is; a run goes on without it.
void find_learned(self_pointer self) {
  auto& task = self->state.task;
  if (!task.learning || task.question.empty() || !task.knowledge)
    return read_files(self);
  offer_learned what{task.who.kernel_id, task.question, task.ranking};
  ask<knowledge_reply>(self, task.knowledge, knowledge_request{{}, std::move(what)},
                       [self](result<knowledge_reply> r) {
                         auto& s = self->state;
                         if (s.over)
                           return;
                         if (r) {
                           s.bank = std::move(r->bank);
                           s.skills = config::redact_text(std::move(r->section), s.task.secrets);
                           s.skill_names = std::move(r->names);
                           add_banked(s.task, s.bank);
                         } else {
                           spdlog::warn("context of {}: continuing without the bank and skills: {}",
                                        s.task.who.agent_id, to_string(r.error()));
                         }
                         read_files(self);
                       });
}

void read_files(self_pointer self) {
  auto& s = self->state;
  if (s.over)
    return;
  const auto& task = s.task;
  if (task.references.empty())
    return recall_entries(self);
  read_items what{task.root, reading_scope(task.root, task.who.kernel_home, task.who.kernel_id),
                  task.references, task.agent->policy, task.secrets};
  ask<workspace_reply>(
      self, task.workspace, workspace_request{{}, std::move(what)},
      [self](result<workspace_reply> r) {
        auto& state = self->state;
        if (state.over)
          return;
        if (!r && r.error().code == errc::overloaded &&
            now_of(self) - state.began < context_patience) {
          const auto more = state.task.context->ports.random->unit();
          return self->delayed_send(
              self, ask_again + std::chrono::duration_cast<milliseconds>(ask_again * more),
              read_again{});
        }
        if (!r)
          return finish(self, fail(std::move(r.error())));
        state.items = std::move(r->items);
        keep_banked(state.items, state.bank, state.task.learning);
        state.commands =
            commands_to_run(state.items, state.task.references, *state.task.agent, state.task.root);
        run_next(self);
      },
      file_patience);
}

reader_impl::behavior_type reader_behavior(self_pointer self, reading_task task) {
  install_handlers(self, "context_reader");
  self->set_down_handler(
      [self](caf::down_msg&) { finish(self, fail(errc::cancelled, "the caller has ended")); });
  self->monitor(task.asker);
  self->state.task = std::move(task);
  return {
      [self](read_context&) {
        auto& s = self->state;
        s.promise = self->make_response_promise<result<context_items>>();
        auto promise = s.promise;
        s.began = now_of(self);
        find_learned(self);
        return promise;
      },
      [self](stop_reading&) { finish(self, fail(errc::cancelled, "the caller no longer waits")); },
      [self](read_again&) { read_files(self); },
      [self](program_ended& m) {
        auto& s = self->state;
        if (s.running && m.number == s.next)
          command_over(self, s.running->outcome(std::move(m.exit)));
      },
      [self](program_look& m) { look_at_command(self, m.number); },
  };
}

} // namespace

milliseconds reading_limit() {
  // A program that does not end is given up by program::look.
  return context_patience + 3 * file_patience + context_command_timeout;
}

context_reader_actor spawn_context_reader(caf::actor_system& system, reading_task task) {
  return system.spawn(reader_behavior, std::move(task));
}

} // namespace boyd
