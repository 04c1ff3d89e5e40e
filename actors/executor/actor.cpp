#include "actors/executor/actor.hpp"

#include "actors/executor/options.hpp"
#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/load.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/redact_outcome.hpp"
#include "boyd/exec/script.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/process_runner.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <mutex>
#include <utility>

namespace boyd::executing {

namespace {

/// CAF cannot cancel a delayed message, and one keeps its receiver's memory: so a run that is
/// over must not leave a timer of hours behind. Longer waits are cut into steps of this length.
constexpr milliseconds longest_tick = 5s;

/// A program that has ended for so long and of whose end nobody told: nobody will.
constexpr milliseconds report_patience = 5s;

/// One piece of output for those who watch, at most this often.
constexpr milliseconds show_interval = 100ms;

cycle_event event_of(self_pointer self, const std::string& phase, const std::string& text) {
  const auto& row = self->state.order.work->row;
  cycle_event e;
  e.kernel_id = row.kernel_id;
  e.cycle_id = row.cycle_id;
  e.phase = phase;
  e.agent_id = row.agent_id;
  e.text = text;
  e.at = self->state.order.context->ports.clock->now();
  e.dispatch_id = row.dispatch_id;
  return e;
}

/// Tells those who watch what the run has written since the last time.
void show_output(self_pointer self, bool at_end) {
  auto& s = self->state;
  if (!s.live)
    return;
  const auto pieces = s.live->take(at_end);
  const auto watchers = s.order.services.watchers();
  for (const auto& piece : pieces)
    if (watchers) {
      auto e = event_of(self, "output", piece.text);
      e.stream = piece.stream == output_stream::out ? "stdout" : "stderr";
      self->send(watchers, std::move(e));
    }
  if (!pieces.empty() && !at_end)
    self->delayed_send(self, show_interval, output_written{});
}

} // namespace

void tell_progress(self_pointer self, const std::string& phase, const std::string& text) {
  if (const auto watchers = self->state.order.services.watchers())
    self->send(watchers, event_of(self, phase, text));
}

void finish(self_pointer self, run_outcome outcome) {
  auto& s = self->state;
  if (s.over || closes_tree(self, outcome) || keeps_memory(self, outcome))
    return;
  keep_report(self, outcome);
  settle_run(self);
  if (!s.prompt_file.empty())
    caf::anon_send(s.order.services.workspace, workspace_request{{}, remove_file{s.prompt_file}});
  judge_commands(self, outcome);
  if (outcome.session_id.empty())
    outcome.session_id = s.session_id;
  outcome = exec::without_secrets(std::move(outcome), s.secrets);
  tell_sandbox(self, outcome);
  tell_skills(s, outcome);
  leave_turns(self);
  end_approvals(self);
  s.over = true;
  *s.no_more_tools = true;
  show_output(self, true);
  s.announced.reset();
  auto told = std::make_shared<run_outcome>(std::move(outcome));
  end_recording(self, *told, [self, told] {
    const auto& order = self->state.order;
    const auto& row = order.work->row;
    if (!faults::lost("dispatcher.finished"))
      self->send(order.sink, run_finished{{}, row.dispatch_id, row.fence, std::move(*told)});
    self->quit();
  });
}

void finish_unstarted(self_pointer self, const error& why, failure_class kind) {
  run_outcome o;
  o.execution = execution_verdict::failed;
  o.failure = kind;
  o.error = to_string(why);
  o.summary = o.error;
  finish(self, std::move(o));
}

namespace {

void start(self_pointer self, exec::run_index run, process_spec spec) {
  auto& s = self->state;
  auto shared = s.attempt;
  const auto live = run == 0 ? s.live : nullptr;
  auto clock = s.order.context->ports.clock;
  caf::actor_addr me = self->address();
  process_events events;
  events.on_output = [shared, clock, run, me, live](output_stream stream, std::string_view bytes) {
    if (live && live->add(stream, bytes))
      if (auto strong = caf::actor_cast<caf::actor>(me))
        caf::anon_send(strong, output_written{});
    std::unique_lock lock(shared->mutex);
    const bool news = shared->core.on_output(run, stream, bytes, clock->steady());
    lock.unlock();
    if (auto strong = news ? caf::actor_cast<caf::actor>(me) : caf::actor())
      caf::anon_send(strong, figures_told{});
  };
  events.on_exit = [me, run](const process_exit& e) {
    if (auto strong = caf::actor_cast<caf::actor>(me))
      caf::anon_send(strong, process_ended{{}, run, e});
  };
  result<process_handle> handle = 0;
  if (auto passed = faults::pass("processes.start"); !passed)
    handle = fail(std::move(passed.error()));
  else
    handle = s.order.context->ports.processes->start(
        std::move(spec), faults::watched(std::move(events), faults::executor_processes));
  if (handle) {
    s.processes[run] = *handle;
    return;
  }
  process_exit failed;
  failed.started = false;
  failed.start_error = to_string(handle.error());
  self->send(self, process_ended{{}, run, failed});
}

void arm_tick(self_pointer self) {
  auto& s = self->state;
  if (s.over || s.timers.empty())
    return;
  auto next = s.timers.begin()->second;
  for (const auto& [kind, at] : s.timers)
    next = std::min(next, at);
  const auto now = now_of(self);
  next = std::min<steady_time>(next, now + longest_tick);
  if (s.tick_at && *s.tick_at <= next)
    return;
  s.tick_at = next;
  const auto delay = next - now;
  // Straight into the mailbox when it is due: the timer's thread would cost two context switches.
  if (delay <= 0ms)
    self->send(self, run_tick{});
  else
    self->delayed_send(self, delay, run_tick{});
}

void stat_file(self_pointer self, const std::string& path) {
  ask<workspace_reply>(self, self->state.order.services.workspace,
                       workspace_request{{}, inspect_files{{path}}},
                       [self](const result<workspace_reply>& r) {
                         result<file_info> info = fail(errc::bug, "no answer for the file");
                         if (!r)
                           info = fail(r.error());
                         else if (!r->files.empty())
                           info = r->files.front();
                         step(self, [&](exec::attempt_core& core, steady_time now) {
                           return core.on_file_info(info, now);
                         });
                       });
}

void read_file(self_pointer self, const exec::effect::read_file& what) {
  ask<workspace_reply>(self, self->state.order.services.workspace,
                       workspace_request{{}, read_text_file{what.path, what.max_bytes}},
                       [self](const result<workspace_reply>& r) {
                         const auto text = r ? result<std::string>(r->text) : fail(r.error());
                         step(self, [&](exec::attempt_core& core, steady_time now) {
                           return core.on_file_text(text, now);
                         });
                       });
}

void perform_one(self_pointer self, exec::attempt_effect& any) {
  if (auto* e = std::get_if<exec::effect::start_process>(&any)) {
    start(self, e->run, std::move(e->spec));
  } else if (auto* k = std::get_if<exec::effect::signal_process>(&any)) {
    if (auto it = self->state.processes.find(k->run);
        it != self->state.processes.end() && !faults::lost("processes.signal"))
      self->state.order.context->ports.processes->signal(it->second, k->signal);
  } else if (auto* t = std::get_if<exec::effect::arm_timer>(&any)) {
    self->state.timers[t->kind] = t->at;
  } else if (auto* f = std::get_if<exec::effect::stat_file>(&any)) {
    stat_file(self, f->path);
  } else if (auto* r = std::get_if<exec::effect::read_file>(&any)) {
    read_file(self, *r);
  } else if (auto* talk = std::get_if<exec::effect::talk>(&any)) {
    perform_talk(self, talk->what);
  } else if (auto* done = std::get_if<exec::effect::finish>(&any)) {
    finish(self, std::move(*done->outcome));
  }
}

} // namespace

void perform(self_pointer self, exec::attempt_effects effects) {
  for (auto& e : effects)
    perform_one(self, e);
  arm_tick(self);
}

namespace {

/// An end that was not reported would be waited for until the attempt's time is over.
void look_for_lost_ends(self_pointer self) {
  auto& s = self->state;
  std::vector<exec::run_index> lost;
  for (const auto& [run, handle] : s.processes) {
    if (s.order.context->ports.processes->runs(handle))
      continue;
    const auto since = s.unreported.try_emplace(run, now_of(self)).first->second;
    if (now_of(self) - since >= report_patience)
      lost.push_back(run);
  }
  for (const auto run : lost) {
    s.processes.erase(run);
    step(self, [run](exec::attempt_core& core, steady_time) { return core.on_lost_exit(run); });
  }
}

void on_tick(self_pointer self) {
  auto& s = self->state;
  if (s.over)
    return;
  if (s.tick_at && now_of(self) < *s.tick_at)
    return;
  s.tick_at.reset();
  look_for_lost_ends(self);
  std::vector<exec::timer_kind> due;
  for (const auto& [kind, at] : s.timers)
    if (at <= now_of(self))
      due.push_back(kind);
  for (const auto kind : due) {
    s.timers.erase(kind);
    step(self, [&](exec::attempt_core& core, steady_time now) { return core.on_timer(kind, now); });
  }
  arm_tick(self);
}

} // namespace

exec::run_identity identity_of(const run_order& order, const std::string& session) {
  const auto& row = order.work->row;
  exec::run_identity who;
  who.home = order.context->home;
  who.kernel_home = order.context->kernel_home(row.kernel_id);
  who.kernel_id = row.kernel_id;
  who.cycle_id = row.cycle_id;
  who.agent_id = row.agent_id;
  who.dispatch_id = row.dispatch_id;
  who.attempt = row.attempt;
  who.fence = row.fence;
  who.session_id = session;
  return who;
}

namespace {

exec::cancel_reason reason_of(cancel_cause cause) {
  switch (cause) {
  case cancel_cause::shutdown:
    return exec::cancel_reason::shutdown;
  case cancel_cause::lease_lost:
    return exec::cancel_reason::lease_lost;
  case cancel_cause::overlap:
    return exec::cancel_reason::next_cycle;
  case cancel_cause::hurry:
    return exec::cancel_reason::hurry;
  case cancel_cause::operator_request:
    break;
  }
  return exec::cancel_reason::by_operator;
}

} // namespace

namespace {

/// What the run writes can be asked for from now on, until its end.
void announce_output(self_pointer self) {
  auto& s = self->state;
  const auto& row = s.order.work->row;
  const auto read = [shared = s.attempt](output_stream stream, std::uint64_t offset,
                                         std::size_t limit) {
    const std::lock_guard lock(shared->mutex);
    return shared->core.written(stream, offset, limit);
  };
  s.announced = s.order.context->outputs->add(row.dispatch_id, {row.fence, s.secrets, read});
}

} // namespace

void begin_attempt(self_pointer self, exec::attempt_options options) {
  auto& s = self->state;
  const bool talks = std::holds_alternative<exec::conversation>(options.work);
  s.attempt = std::make_shared<shared_attempt>(std::move(options));
  if (talks)
    open_line(self);
  if (s.live)
    announce_output(self);
  // Nothing is started that nobody wants any more: its lease may be lost.
  if (s.cancelled_early)
    return step(self, [&](exec::attempt_core& core, steady_time now) {
      return core.cancel(reason_of(*s.cancelled_early), now);
    });
  step(self, [](exec::attempt_core& core, steady_time now) { return core.begin(now); });
}

result<void> add_checks(self_pointer self, exec::attempt_options& options,
                        const config::command_executor& surroundings,
                        const std::function<result<void>(process_spec&)>& confine) {
  const auto& s = self->state;
  for (const auto& r : s.order.agent->require) {
    if (r.kind != config::requirement::kind_t::command)
      continue;
    auto check = exec::build_check(r.argv, surroundings, identity_of(s.order, s.session_id),
                                   s.order.context->environment);
    if (!check)
      return fail(check.error());
    if (auto confined = confine(*check); !confined)
      return confined;
    options.checks.push_back(std::move(*check));
  }
  return {};
}

namespace {

void begin_command(self_pointer self, const config::command_executor& command) {
  auto& s = self->state;
  const auto who = identity_of(s.order, s.session_id);
  s.live = std::make_shared<exec::live_output>(s.secrets);
  auto plan = exec::build_command(command, prompt_of(self), who, s.order.context->environment);
  if (!plan)
    return finish_unstarted(self, plan.error(), failure_class::environment);
  const auto confine = [&](process_spec& process) -> result<void> {
    if (!s.order.agent->sandbox.commands)
      return {};
    std::vector<std::string> prompt;
    if (plan->prompt)
      prompt.push_back(plan->prompt->path);
    return put_into_sandbox(self, process, {process.cwd, who.kernel_home}, std::move(prompt));
  };
  if (auto confined = confine(plan->process); !confined)
    return finish_unstarted(self, confined.error(), failure_class::environment);
  auto options = options_for(*self->state.order.context, *self->state.order.agent,
                             self->state.order.work->row);
  options.output_bytes = command.output_bytes;
  options.context = exec::level_for(s.order.work->row.attempts_json);
  options.exit_classes = command.exit_classes;
  options.base_directory = plan->process.cwd;
  if (auto added = add_checks(self, options, command, confine); !added)
    return finish_unstarted(self, added.error(), failure_class::environment);
  begin_program(self, std::move(*plan), std::move(options));
}

} // namespace

void begin_program(self_pointer self, exec::command_plan plan, exec::attempt_options options) {
  auto& s = self->state;
  options.work = std::move(plan.process);
  if (!plan.prompt)
    return begin_attempt(self, std::move(options));
  s.prompt_file = plan.prompt->path;
  ask<workspace_reply>(
      self, s.order.services.workspace,
      workspace_request{{}, write_private_file{plan.prompt->path, plan.prompt->content}},
      [self, options](result<workspace_reply> r) {
        if (!r)
          return finish_unstarted(self, r.error(), failure_class::transient);
        begin_attempt(self, options);
      });
}

namespace {

void begin_answer(self_pointer self, const std::vector<config::script_executor::answer>& answers) {
  const auto* answer = exec::pick_answer(answers, self->state.order.run_index);
  if (answer == nullptr)
    return finish_unstarted(self,
                            {errc::invalid_configuration, "the script has no answers", {}, {}},
                            failure_class::environment);
  auto options = options_for(*self->state.order.context, *self->state.order.agent,
                             self->state.order.work->row);
  options.work = *answer;
  begin_attempt(self, std::move(options));
}

result<std::vector<config::script_executor::answer>> read_answers(const std::string& text,
                                                                  const std::string& file) {
  const bool yaml = file.ends_with(".yaml") || file.ends_with(".yml");
  return yaml ? config::load_answers(file, text) : exec::parse_script(text, file);
}

void begin_script(self_pointer self, const config::script_executor& script) {
  if (script.file.empty())
    return begin_answer(self, script.answers);
  ask<workspace_reply>(self, self->state.order.services.workspace,
                       workspace_request{{}, read_text_file{script.file, exec::max_script_bytes}},
                       [self, file = script.file](result<workspace_reply> r) {
                         if (!r)
                           return finish_unstarted(self, r.error(), failure_class::environment);
                         auto answers = read_answers(r->text, file);
                         if (!answers)
                           return finish_unstarted(self, answers.error(),
                                                   failure_class::environment);
                         begin_answer(self, *answers);
                       });
}

void begin_work(self_pointer self) {
  const auto& run = self->state.order.agent->run;
  // What a model is told is known later.
  if (const auto* chat = std::get_if<config::chat_executor>(&run))
    return begin_chat(self, *chat);
  begin_recording(self, {}, [self] {
    const auto& what = self->state.order.agent->run;
    static_assert(std::variant_size_v<config::executor> == 4, "a new one begins here");
    if (const auto* command = std::get_if<config::command_executor>(&what))
      begin_command(self, *command);
    else
      begin_script(self, std::get<config::script_executor>(what));
  });
}

executor_impl::behavior_type executor_behavior(self_pointer self, run_order order) {
  install_handlers(self, "executor");
  self->state.order = std::move(order);
  self->state.secrets = self->state.order.configuration->secrets;
  self->state.session_id = session_of(self->state.order.work->row);
  self->send(self, begin_run{});
  return {
      [self](cancel_run& m) {
        if (!self->state.attempt) {
          self->state.cancelled_early = m.cause;
          stop_setup(self);
          return stop_gathering(self);
        }
        step(self, [&](exec::attempt_core& core, steady_time now) {
          return core.cancel(reason_of(m.cause), now);
        });
      },
      [self](begin_run&) {
        if (auto passed = faults::pass("executor.run"); !passed)
          return finish_unstarted(self, passed.error(), failure_class::transient);
        const auto& row = self->state.order.work->row;
        tell_progress(self, "run",
                      row.attempt > 1
                          ? fmt::format("attempt {} of {}", row.attempt, row.max_attempts)
                          : std::string("started"));
        const auto& run = self->state.order.agent->run;
        // Its references are read where it works, which may be a worktree.
        if (const auto* cli = std::get_if<config::agent_cli_executor>(&run))
          reserve_run(self, *cli);
        else
          gather_items(self, reading_root_of(self), [self] { begin_work(self); });
      },
      [self](process_ended& m) {
        if (m.exit.started)
          self->state.any_started = true;
        self->state.processes.erase(m.run);
        step(self, [&](exec::attempt_core& core, steady_time now) {
          return core.on_exit(m.run, m.exit, now);
        });
      },
      [self](figures_told&) {
        step(self, [](exec::attempt_core& core, steady_time now) { return core.on_figures(now); });
      },
      [self](output_written&) { show_output(self, false); },
      [self](run_tick&) { on_tick(self); },
      [self](place_answer& m) { self->state.calls.on_place(m); },
      [self](conversing::call_returned& m) { self->state.calls.on_returned(m); },
      [self](conversing::call_again& m) { self->state.calls.on_again(m); },
      [self](program_ended& m) {
        if (!on_setup_ended(self, m))
          on_command_ended(self, m);
      },
      [self](program_look& m) {
        if (!on_setup_look(self, m))
          on_command_look(self, m);
      },
      [self](tree_made& m) { on_tree_made(self, m); },
      [self](tree_closed& m) { on_tree_closed(self, m); },
      [self](approval_answer& m) { on_approval_answer(self, m); },
      [](late_order& m) { m.carry_out(); },
  };
}

} // namespace

} // namespace boyd::executing

namespace boyd {

executor_actor spawn_executor(caf::actor_system& system, run_order order) {
  return system.spawn(executing::executor_behavior, std::move(order));
}

} // namespace boyd
