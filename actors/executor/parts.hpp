#pragma once

#include "actors/executor/actor.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/worktrees.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Private to actors/executor: what its files share.
namespace boyd::executing {

struct process_ended : message {
  exec::run_index run = 0;
  process_exit exit;
};

struct run_tick : message {};

struct begin_run : message {};

/// The transport is through with a call of a model.
struct model_call_ended : message {
  std::uint64_t call = 0;
  result<void> transport;
};

/// The wait before a repetition of a call is over.
struct talk_again : message {
  std::uint64_t call = 0;
};

/// A command that a tool ran has ended.
struct tool_command_ended : message {
  std::uint64_t step = 0;
  process_exit exit;
  std::string output; ///< capped, with the missing bytes said
};

/// A command that a tool ran has had its time.
struct tool_command_overdue : message {
  std::uint64_t step = 0;
};

/// The worktree of the run stands, or not.
struct tree_made : message {
  result<worktree_made> made;
};

/// The worktree of the run is gone, and what was changed there is known.
struct tree_closed : message {
  result<worktree_change> change;
};

/// The worktree of a run.
struct run_tree {
  worktree_order order;
  std::string base; ///< hash; empty until it stands
};

/// The command of a tool that is under way.
struct tool_command {
  std::uint64_t step = 0;
  process_handle handle = 0;
  bool overdue = false;                    ///< it was ended
  std::optional<steady_time> unreported{}; ///< ended, as its runner says, since then
};

using executor_impl =
    executor_actor::extend<caf::reacts_to<begin_run>, caf::reacts_to<process_ended>,
                           caf::reacts_to<run_tick>, caf::reacts_to<place_answer>,
                           caf::reacts_to<model_call_ended>, caf::reacts_to<talk_again>,
                           caf::reacts_to<tool_command_ended>, caf::reacts_to<tool_command_overdue>,
                           caf::reacts_to<tree_made>, caf::reacts_to<tree_closed>>;

/// The attempt, shared with the process runner's thread: output goes straight into it (bounded
/// memory however fast a child writes), everything else through the actor's mailbox.
struct shared_attempt {
  std::mutex mutex;
  exec::attempt_core core;

  explicit shared_attempt(exec::attempt_options options) : core(std::move(options)) {}
};

struct executor_state {
  run_order order;
  std::shared_ptr<shared_attempt> attempt;
  std::map<exec::run_index, process_handle> processes;
  std::map<exec::run_index, steady_time> unreported; ///< ended, as their runner says, since then
  std::map<exec::timer_kind, steady_time> timers;
  bool ticking = false;
  bool over = false;
  std::string prompt_file;
  std::string session_id;
  std::optional<cancel_cause> cancelled_early;
  /// The call of a model that is under way, and its number.
  std::optional<std::pair<std::uint64_t, http_handle>> model_call;
  std::optional<tool_command> command;
  std::optional<run_tree> tree;
  std::optional<run_outcome> closing; ///< waits for the worktree's end
  std::string session;                ///< of an agent's own program, that the run goes on with
  std::uint64_t turns_noted = 0;      ///< lines of the turn record so far
  std::string turn_lines;             ///< of the turn record, not written yet
  std::vector<std::string> secrets;   ///< beyond the configuration's: keys from files
  static inline const char* name = "executor";

  ~executor_state() {
    if (!order.context)
      return;
    for (const auto& [run, handle] : processes)
      order.context->ports.processes->signal(handle, SIGKILL);
    if (command)
      order.context->ports.processes->signal(command->handle, SIGKILL);
    if (model_call)
      order.context->ports.http->cancel(model_call->second);
    if (tree && !tree->base.empty())
      order.context->ports.trees->close(tree->order, tree->base,
                                        [](const result<worktree_change>&) {});
  }
};

using self_pointer = executor_impl::stateful_pointer<executor_state>;

inline steady_time now_of(self_pointer self) {
  return self->state.order.context->ports.clock->steady();
}

void perform(self_pointer self, exec::attempt_effects effects); // actor.cpp

/// Hands `event(core, now)` to the attempt and performs what comes of it.
template <class Event>
void step(self_pointer self, Event event) {
  auto shared = self->state.attempt;
  std::unique_lock lock(shared->mutex);
  auto effects = event(shared->core, now_of(self));
  lock.unlock();
  perform(self, std::move(effects));
}

/// Ends the attempt before it began.
void finish_unstarted(self_pointer self, const error& why, failure_class kind);     // actor.cpp
void begin_attempt(self_pointer self, exec::attempt_options options);               // actor.cpp
exec::run_identity identity_of(const run_order& order, const std::string& session); // actor.cpp

// chat.cpp: conversations with models
void begin_chat(self_pointer self, const config::chat_executor& chat);
void perform_talk(self_pointer self, exec::chat_effect& effect);
void on_place(self_pointer self, const place_answer& m);
void on_call_ended(self_pointer self, const model_call_ended& m);
void on_talk_again(self_pointer self, const talk_again& m);
void give_tools(self_pointer self,
                exec::conversation& c); // tools.cpp: what it may do, and who judges
/// run_tool, ask_person and stop_step.
void perform_action(self_pointer self, exec::chat_effect& effect); // tools.cpp
void on_tool_command_ended(self_pointer self, const tool_command_ended& m);
void on_tool_command_overdue(self_pointer self, const tool_command_overdue& m);
/// Gives up a command whose end nobody reported for `patience`.
void look_for_lost_command(self_pointer self, milliseconds patience);
/// Writes what is left of the turn record.
void write_turns(self_pointer self);

// agent_cli.cpp: agents with a command line of their own
void begin_agent_cli(self_pointer self, const config::agent_cli_executor& cli);
void on_tree_made(self_pointer self, tree_made& m);
/// True: `outcome` is kept until the run's worktree is closed, and finish comes again then.
bool closes_tree(self_pointer self, run_outcome& outcome);
void on_tree_closed(self_pointer self, tree_closed& m);
/// What the program told of its session and its costs, for later runs and `boyd cost`.
void keep_report(self_pointer self, const run_outcome& outcome);
void finish(self_pointer self, run_outcome outcome); // actor.cpp
/// Starts the program, its prompt in a file where it wants one.
void begin_program(self_pointer self, exec::command_plan plan,
                   exec::attempt_options options); // actor.cpp

} // namespace boyd::executing
