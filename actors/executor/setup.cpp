#include "actors/executor/parts.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/cli_command.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace boyd::executing {

namespace {

/// Of the program; tools' commands have the numbers of their steps.
constexpr auto setup_number = std::numeric_limits<std::uint64_t>::max();
/// What is kept of its output.
constexpr std::size_t setup_output_bytes = std::size_t{64} << 10;

const config::worktree_settings& settings_of(self_pointer self) {
  return *std::get<config::agent_cli_executor>(self->state.order.agent->run).worktree;
}

void fail_setup(self_pointer self, const std::string& why, std::string output) {
  run_outcome o;
  o.execution = execution_verdict::failed;
  o.failure = failure_class::environment;
  o.error = "the setup command of the worktree failed: " + why;
  o.summary = std::string(cut_characters(o.error, limits::summary_characters));
  o.output = std::move(output);
  finish(self, std::move(o));
}

result<process_spec> program_of(self_pointer self) {
  const auto& s = self->state;
  exec::cli_run run;
  run.directory = s.tree->order.path;
  const auto surroundings =
      exec::checks_of(std::get<config::agent_cli_executor>(s.order.agent->run), run);
  auto process =
      exec::build_check(settings_of(self).setup, surroundings, identity_of(s.order, s.session_id),
                        s.order.context->environment);
  if (process)
    if (auto confined = confine_cli(self, *process, {}); !confined)
      return fail(std::move(confined.error()));
  return process;
}

} // namespace

void set_up(self_pointer self, std::function<void()> then) {
  auto& s = self->state;
  // One that is cancelled ends where it would begin.
  if (settings_of(self).setup.empty() || s.cancelled_early)
    return then();
  auto process = program_of(self);
  if (!process)
    return fail_setup(self, to_string(process.error()), {});
  program_order order{std::move(*process), settings_of(self).setup_timeout, setup_output_bytes};
  order.merges = true;
  order.points = run_points;
  s.setup = tree_setup{std::make_unique<program>(s.order.context->ports.processes, std::move(order),
                                                 now_of(self),
                                                 program::tells(self->address(), setup_number)),
                       std::move(then)};
  on_setup_look(self, {{}, setup_number});
}

bool on_setup_ended(self_pointer self, const program_ended& m) {
  auto& s = self->state;
  if (!s.setup || m.number != setup_number)
    return false;
  const auto end = s.setup->running->outcome(m.exit);
  const auto then = std::move(s.setup->then);
  s.setup.reset();
  s.any_started = s.any_started || end.exit.started;
  if (const auto why = problem_of(end); !why.empty() && !s.cancelled_early)
    fail_setup(self, why, end.output);
  else
    then();
  return true;
}

bool on_setup_look(self_pointer self, const program_look& m) {
  auto& s = self->state;
  if (!s.setup || m.number != setup_number)
    return false;
  if (const auto next = s.setup->running->look(now_of(self))) {
    self->delayed_send(self, *next, program_look{{}, m.number});
    return true;
  }
  s.setup.reset();
  fail_setup(self, "it does not end, not even after SIGKILL", {});
  return true;
}

void stop_setup(self_pointer self) {
  if (self->state.setup)
    self->state.setup->running->kill();
}

} // namespace boyd::executing
