#pragma once

#include "actors/context/actor.hpp"
#include "actors/conversation/line.hpp"
#include "actors/executor/actor.hpp"
#include "actors/program/program.hpp"
#include "actors/support/past_faults.hpp"
#include "boyd/core/boxed.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/context_level.hpp"
#include "boyd/exec/live_output.hpp"
#include "boyd/exec/patch_words.hpp"
#include "boyd/exec/told_tools.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/worktrees.hpp"
#include "boyd/record/execution.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/file_prints.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <nlohmann/json.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Private to actors/executor: what its files share.
namespace boyd::executing {

struct process_ended : message {
  exec::run_index run = 0;
  process_exit exit;
};

/// A program told of figures that are near its budget, or beyond it.
struct figures_told : message {};

/// The run has written something that a watcher may be shown.
struct output_written : message {};

struct run_tick : message {};

struct begin_run : message {};

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
  /// Of its patch; written before tree_closed comes.
  std::shared_ptr<exec::patch_words> changed = std::make_shared<exec::patch_words>();
};

/// An action that waits for a person's word.
struct asked_action {
  std::uint64_t step = 0;
  model::tool_call call;
  std::string wish; ///< approval_wish::ask.approval_id
  std::string reason;
  std::optional<store::approval> row; ///< that was approved
  /// Of a file that would be replaced: what is there, for tools::permission.
  std::optional<std::string> before{};
  bool ends_run = false;                ///< when nobody decides
  std::vector<tools::file_print> met{}; ///< what it would have met when it was asked about
  std::vector<std::string> changed{};   ///< of that, since then
  int asked_again = 0;                  ///< so often it had changed before it could be used
};

/// A command that a person allowed, and what it may meet.
struct bound_command {
  std::uint64_t step = 0;
  std::string hash;
  std::vector<tools::file_print> met;
};

/// Told why the record could not be written, if so.
using record_waiter = std::function<void(const std::optional<error>&)>;

/// An action whose decision is on its way to the disk.
struct held_step {
  std::uint64_t step = 0;
  record_waiter go;
};

/// The command of a tool that is under way.
struct tool_command {
  std::uint64_t step = 0;
  std::unique_ptr<program> running;
};

/// The `setup` of a worktree that is under way.
struct tree_setup {
  std::unique_ptr<program> running;
  std::function<void()> then;
};

using executor_impl = executor_actor::extend<
    caf::reacts_to<begin_run>, caf::reacts_to<process_ended>, caf::reacts_to<figures_told>,
    caf::reacts_to<output_written>, caf::reacts_to<run_tick>, caf::reacts_to<place_answer>,
    caf::reacts_to<conversing::call_returned>, caf::reacts_to<conversing::call_again>,
    caf::reacts_to<program_ended>, caf::reacts_to<program_look>, caf::reacts_to<tree_made>,
    caf::reacts_to<tree_closed>, caf::reacts_to<approval_answer>, caf::reacts_to<late_order>>;

/// The attempt, shared with the process runner's thread: output goes straight into it (bounded
/// memory however fast a child writes), everything else through the actor's mailbox.
struct shared_attempt {
  std::mutex mutex;
  exec::attempt_core core;

  explicit shared_attempt(exec::attempt_options options) : core(std::move(options)) {}
};

/// A turn as it is noted; its values become JSON of the record.
struct recorded_turn {
  int number = 1;
  context::snapshot snapshot; ///< what could be cited in it
  nlohmann::json action;
  nlohmann::json governance;
  nlohmann::json result;
};

/// A tool's result, as an answer may cite it.
struct tool_result {
  std::vector<std::string> names; ///< its path, address or command
  std::string content;            ///< for the check of its use; empty: it is not looked for
};

/// What the tools of an agent's own program read, as its events tell.
struct told_reading {
  std::string directory;                 ///< in which the program works
  nlohmann::json calls;                  ///< by their steps, for the action of its turn
  nlohmann::json results;                ///< the same, for its result
  std::uint64_t dropped = 0;             ///< more uses of tools
  std::vector<context::citable> items{}; ///< that its answer may cite
};

/// What goes on record of the attempt.
struct run_record {
  context::snapshot present;
  std::vector<recorded_turn> turns;           ///< of a conversation
  std::map<std::string, std::string> calls;   ///< of the latest answer, by their ids
  std::map<std::string, std::string> steps;   ///< calls by their steps
  std::map<std::string, tool_result> results; ///< by the ids of their items
  std::vector<std::string> paths;             ///< that actions read, wrote or named
  std::vector<std::string> contents;          ///< of tools' results, not on the disk yet
  bool has_news = false;                      ///< the record does not know all turns
  bool is_begun = false;                      ///< its beginning is on the disk
  utc_time began{};
  std::string system; ///< a chat's system message
  std::string tools;  ///< JSON of those that it is offered
  std::string said;   ///< the latest answer of a model, whole
  std::string wrote;  ///< lines that it added to a worktree
  told_reading told;
};

struct executor_state;
/// Nobody waits for a call of a server's tool any more.
void drop_server_tool(executor_state& s); // mcp.cpp

struct executor_state {
  run_order order;
  std::shared_ptr<shared_attempt> attempt;
  std::map<exec::run_index, process_handle> processes;
  std::map<exec::run_index, steady_time> unreported; ///< ended, as their runner says, since then
  std::map<exec::timer_kind, steady_time> timers;
  std::optional<steady_time> tick_at;      ///< the next one; what comes before it is void
  std::shared_ptr<exec::live_output> live; ///< null: what the run writes is not shown
  std::shared_ptr<const void> announced;   ///< to running_outputs, of what is shown
  bool over = false;
  /// run_tool::over of its calls.
  std::shared_ptr<std::atomic<bool>> no_more_tools = std::make_shared<std::atomic<bool>>(false);
  std::string prompt_file;
  std::string session_id;
  context_reader_actor context_reader; ///< while it reads
  std::string root;                    ///< below which it reads them; empty: nothing was to be read
  std::vector<context::offered_item> items;
  std::map<std::string, context::item_statistics> known; ///< what the log says of them, by id
  std::string question;                                  ///< by which entries of memory were found
  std::string skills;                   ///< the section `# Skills`; empty: it is told of none
  std::vector<std::string> skill_names; ///< that it may declare
  bool has_gathered = false;            ///< its items are read
  context::context_block block;         ///< what the attempt's prompt shows of them
  boxed<run_record> record;             ///< nothing: it has not begun
  bool is_of_flood = false;             ///< the database alone has it: no record is written
  std::optional<cancel_cause> cancelled_early;
  conversing::line calls;                           ///< of a model
  std::optional<exec::effect::ask_place> held_call; ///< waits for the record of its turn
  std::optional<tool_command> command;
  boxed<asked_action> asked;
  /// The step that a person allowed last, and asked_action::before of it.
  std::optional<std::pair<std::uint64_t, std::string>> replaces;
  std::optional<bound_command> bound; ///< the command that a person allowed last
  bool has_asked = false;             ///< there may be something to withdraw
  boxed<run_tree> tree;
  std::optional<tree_setup> setup;
  boxed<run_outcome> closing;               ///< waits for the worktree's end
  bool has_remembered = false;              ///< what the program asked to be remembered is
  std::vector<mcp_tool> server_tools;       ///< tools of servers that this run may be told of
  std::vector<std::string> server_notes;    ///< what is missing of them, for the record
  std::optional<std::uint64_t> server_step; ///< the call of such a tool that is under way
  std::string session;                 ///< of an agent's own program, that the run goes on with
  bool reserved = false;               ///< the budgets have the run of such a program
  std::uint64_t turns_noted = 0;       ///< lines of the turn record so far
  std::string turn_lines;              ///< of the turn record, not written yet
  std::uint64_t records_under_way = 0; ///< writes of it that were not answered yet
  std::optional<error> record_trouble; ///< of the last that was
  std::optional<executing::held_step> held_step;
  boxed<sandbox_report> sandbox;    ///< what is in force; nothing: no program was confined
  bool any_started = false;         ///< a program of the run began: its sandbox was made
  std::string not_started;          ///< why a command of a tool did not begin; empty: all did
  bool command_started = false;     ///< of a tool
  std::string scratch;              ///< the run's temporary directory, to be removed
  std::vector<std::string> secrets; ///< beyond the configuration's: keys from files
  static inline const char* name = "executor";

  ~executor_state() {
    if (!order.context)
      return;
    *no_more_tools = true;
    drop_server_tool(*this);
    for (const auto& [run, handle] : processes)
      order.context->ports.processes->signal(handle, SIGKILL);
    if (tree && !tree->base.empty())
      order.context->ports.trees->close(tree->order, tree->base,
                                        [](const result<worktree_change>&) {});
  }
};

using self_pointer = executor_impl::stateful_pointer<executor_state>;

// mcp.cpp: tools of servers
bool is_server_tool(std::string_view name);
/// Asks for the tools that the agent names, then goes on; without what it needs the run ends.
void gather_server_tools(self_pointer self, std::function<void()> then);
void offer_server_tools(self_pointer self, std::vector<tools::definition>& all);
/// By tool: the host of its server, where it has an address.
std::map<std::string, std::string> server_hosts(self_pointer self);
exec::judgement judge_server_tool(const std::string& tool,
                                  const std::map<std::string, std::string>& hosts,
                                  const config::agent& agent);
/// `done`: what the model is to read, and whether it is an error.
void call_server_tool(self_pointer self, const exec::effect::run_tool& e,
                      std::function<void(std::string, bool)> done);
void stop_server_tool(self_pointer self, std::uint64_t step);
/// What is missing of them goes on record.
void tell_server_notes(self_pointer self);

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

// context.cpp: what the run is given to read
/// Where its references begin and end, but for a worktree.
std::string reading_root_of(self_pointer self);
/// Reads what the run refers to below `root`, then goes on; without a required item it ends.
void gather_items(self_pointer self, std::string root, std::function<void()> then);
/// Makes the block of what the attempt's prompt shows of the items.
void fill_block(self_pointer self);
/// Asks the agent's summarizer for what the block shows as summaries, fills the block anew, then
/// goes on; without a usable answer the rules' summaries stay. summarizer.cpp
void summarize_items(self_pointer self, std::function<void()> then);
/// The run is cancelled: what is read is not waited for.
void stop_gathering(self_pointer self);
/// The prompt of the attempt, with its context.
std::string prompt_of(self_pointer self);

// record.cpp: executions/<dispatch_id>/record.json
/// What a model is told beside its prompt.
struct told_besides {
  std::string system;
  std::string tools; ///< JSON of what it may use
};
/// Puts on record what the run is told and reads, then goes on; without it the run ends.
void begin_recording(self_pointer self, told_besides told, std::function<void()> then);
/// What a chat is told of the citations in its final answer, once and where they are enforced;
/// empty: nothing.
std::string correction_for(self_pointer self, const std::string& answer);
/// Before a call of a model: its turn is opened, and goes on record with those that came before it;
/// then goes on, whatever came of it.
void keep_turns(self_pointer self, int turn, std::function<void()> then);
/// A line of the turn record (turn_record.cpp).
void note_for_record(self_pointer self, const std::string& line);
/// Puts the end on record and what was read into its usage, then goes on, whatever came of it. Of a
/// run that could not begin the whole.
void end_recording(self_pointer self, run_outcome& outcome, std::function<void()> then);

// chat.cpp: conversations with models
void begin_chat(self_pointer self, const config::chat_executor& chat);
/// Before the attempt's first step.
void open_line(self_pointer self);
void perform_talk(self_pointer self, exec::chat_effect& effect);
void give_tools(self_pointer self,
                exec::conversation& c); // tools.cpp: what it may do, and who judges
/// run_tool, ask_person and stop_step.
void perform_action(self_pointer self, exec::chat_effect& effect); // tools.cpp
/// Where the agent's tools work, absolute.
std::string workspace_of(const run_order& order);
void on_command_ended(self_pointer self, const program_ended& m);
void on_command_look(self_pointer self, const program_look& m);

/// Tells those who watch, if anybody does, what the run is doing: "run", or "wait" where it may
/// take long. Without secrets.
void tell_progress(self_pointer self, const std::string& phase, const std::string& text);

// turn_record.cpp
/// Adds a line to the turn record: a JSON object with at least one member.
void note_turn(self_pointer self, const std::string& json);
/// Calls `go` once all lines so far are on the disk, or with what kept the last from it: what was
/// decided about an action is recorded before it happens, also when the node is killed. One step
/// waits at a time.
void when_recorded(self_pointer self, std::uint64_t step, record_waiter go);
/// Sends what is left of the record, as the run ends.
void leave_turns(self_pointer self);

// memory.cpp: what runs remember
/// True: `outcome` is kept until what the program asked to be remembered is, and finish comes again
/// then.
bool keeps_memory(self_pointer self, run_outcome& outcome);
/// `done`: what the model is to read, and whether it is an error.
void remember(self_pointer self, const tools::remember_call& call,
              std::function<void(std::string, bool)> done);
void recall(self_pointer self, const tools::recall_call& call,
            std::function<void(std::string, bool)> done);

// skills.cpp: approved ways of doing things
/// `done`: what the model is to read, and whether it is an error.
void read_skill(self_pointer self, const tools::read_skill_call& call,
                std::function<void(std::string, bool)> done);
/// Of the skills that an answer declares, those that the run may: into its usage.
void tell_skills(const executor_state& s, run_outcome& outcome);

// sandbox.cpp: what programs of a run may reach
/// The agent as it is configured now.
std::shared_ptr<const config::agent> agent_now(const run_order& order);
/// As the agent's `sandbox` says; `writable` and `readable` are what this program needs besides.
/// What is in force is noted. `closed`: sandbox_places::closed. An error: it must not be started.
result<void> put_into_sandbox(self_pointer self, process_spec& process,
                              std::vector<std::string> writable,
                              std::vector<std::string> readable = {},
                              std::vector<std::string> closed = {});
/// Into the run's usage; what its programs left in their temporary directory is removed.
void tell_sandbox(self_pointer self, run_outcome& outcome);

/// A run of which no command of a tool could begin has not done what it says.
void judge_commands(self_pointer self, run_outcome& outcome);

// approvals.cpp: actions that a person decides about
void ask_person(self_pointer self, const exec::effect::ask_person& question);
void on_approval_answer(self_pointer self, const approval_answer& m);
/// The conversation does not wait for it any more.
void forget_question(self_pointer self, std::uint64_t number);
/// A command that a person allowed is about to start: `start` when all that it may meet is still
/// what was approved; else the step is answered.
void check_bound(self_pointer self, std::uint64_t step, const model::tool_call& call,
                 std::function<void()> start);
/// The run is over: what it asked is withdrawn.
void end_approvals(self_pointer self);

// agent_cli.cpp: agents with a command line of their own
void begin_agent_cli(self_pointer self, const config::agent_cli_executor& cli);
void on_tree_made(self_pointer self, tree_made& m);
/// True: `outcome` is kept until the run's worktree is closed, and finish comes again then.
bool closes_tree(self_pointer self, run_outcome& outcome);
void on_tree_closed(self_pointer self, tree_closed& m);
/// Puts a program of the run into its sandbox: it works in its `cwd`, and in the repository of its
/// worktree. `prompt`: a file that it reads; may be empty.
result<void> confine_cli(self_pointer self, process_spec& process, const std::string& prompt);

// setup.cpp: what prepares a fresh worktree
/// Runs `setup`, then goes on; where it fails the run has failed.
void set_up(self_pointer self, std::function<void()> then);
/// True: the message was about it.
bool on_setup_ended(self_pointer self, const program_ended& m);
bool on_setup_look(self_pointer self, const program_look& m);
/// The run is cancelled.
void stop_setup(self_pointer self);
// cli_budget.cpp
/// Takes the run from the budgets of the day, then begin_agent_cli; one that they do not allow does
/// not begin.
void reserve_run(self_pointer self, const config::agent_cli_executor& cli);
/// Puts what the program told in the place of what was reserved.
void settle_run(self_pointer self);

/// What the program told of its session, for later runs.
void keep_report(self_pointer self, const run_outcome& outcome);
void finish(self_pointer self, run_outcome outcome); // actor.cpp
/// The programs of the agent's requirements; each is confined.
result<void> add_checks(self_pointer self, exec::attempt_options& options,
                        const config::command_executor& surroundings,
                        const std::function<result<void>(process_spec&)>& confine); // actor.cpp
/// Starts the program, its prompt in a file where it wants one.
void begin_program(self_pointer self, exec::command_plan plan,
                   exec::attempt_options options); // actor.cpp

} // namespace boyd::executing
