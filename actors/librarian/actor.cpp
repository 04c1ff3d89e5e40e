#include "actors/librarian/actor.hpp"

#include "actors/librarian/parts.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor_system.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd {

namespace librarian {

state::~state() {
  const auto why = fail(errc::actor_down, "the part is stopping", name);
  for (auto& [id, g] : gatherings)
    for (auto& p : g->waiting)
      p.deliver(result<gathered_context>(why));
  for (const auto& c : checks)
    c->promise.deliver(result<wake_results>(why));
}

namespace {

void start_helpers(pointer self);

void end_helper(pointer self, std::uint64_t id, result<program_outcome> outcome) {
  auto ended = self->state.running.extract(id);
  if (ended.empty())
    return;
  ended.mapped().done(std::move(outcome));
  start_helpers(self);
}

void look_at_helper(pointer self, std::uint64_t id) {
  const auto it = self->state.running.find(id);
  if (it == self->state.running.end())
    return;
  if (auto next = it->second.running->look(self->state.context->ports.clock->steady()))
    self->delayed_send(self, *next, program_look{{}, id});
  else
    end_helper(self, id, fail(std::move(next.error())));
}

void start_helpers(pointer self) {
  auto& s = self->state;
  while (!s.waiting.empty() && s.running.size() < helpers_at_once) {
    const auto id = s.waiting.front().id;
    auto& h = s.running[id] = std::move(s.waiting.front());
    s.waiting.pop_front();
    const auto& ports = s.context->ports;
    h.running =
        std::make_unique<program>(ports.processes, std::move(h.order), ports.clock->steady(),
                                  program::tells(self->address(), id));
    look_at_helper(self, id);
  }
}

void on_helper_ended(pointer self, program_ended& m) {
  if (const auto it = self->state.running.find(m.number); it != self->state.running.end())
    end_helper(self, m.number, it->second.running->outcome(std::move(m.exit)));
}

/// With `node.sandbox.scope: all`; `done` then also removes its temporary directory.
result<void> put_into_sandbox(pointer self, process_spec& spec, exec::run_identity who,
                              std::uint64_t id,
                              std::function<void(result<program_outcome>)>& done) {
  const auto& s = self->state;
  if (!s.configuration || !s.configuration->node_settings.sandbox.commands)
    return {};
  who.dispatch_id = "helper-" + std::to_string(id);
  const auto report = exec::confine(spec, s.configuration->node_settings.sandbox,
                                    s.context->ports.processes->sandbox(),
                                    {{spec.cwd, who.kernel_home},
                                     {},
                                     exec::hidden_from_agents(*s.configuration, who.home),
                                     exec::read_only_for_agents(*s.configuration, who.home)},
                                    who);
  if (!report)
    return fail(report.error());
  if (spec.sandbox && !spec.sandbox->scratch.empty())
    done = [processes = s.context->ports.processes, scratch = spec.sandbox->scratch,
            done = std::move(done)](result<program_outcome> outcome) {
      exec::remove_scratch(*processes, scratch);
      done(std::move(outcome));
    };
  return {};
}

} // namespace

void run_helper(pointer self, const config::kernel& kernel, const std::vector<std::string>& argv,
                const config::command_executor& surroundings, const std::string& agent_id,
                milliseconds timeout, std::size_t output_bytes,
                std::function<void(result<program_outcome>)> done) {
  auto& state = self->state;
  exec::run_identity who;
  who.home = state.context->home;
  who.kernel_id = kernel.kernel_id;
  who.kernel_home = state.context->kernel_home(kernel.kernel_id);
  who.agent_id = agent_id;
  auto spec = exec::build_check(argv, surroundings, who, state.context->environment);
  if (!spec) {
    done(result<program_outcome>(fail(std::move(spec.error()))));
    return;
  }
  const auto id = ++state.last_helper;
  if (auto confined = put_into_sandbox(self, *spec, who, id, done); !confined) {
    done(result<program_outcome>(fail(std::move(confined.error()))));
    return;
  }
  program_order order{std::move(*spec), timeout, output_bytes};
  order.points = helper_points;
  state.waiting.push_back({id, std::move(order), std::move(done)});
  start_helpers(self);
  if (!state.waiting.empty() && state.waiting.back().id == id)
    self->delayed_send(self, helper_patience, helper_overdue{{}, id});
}

void give_up_waiting(pointer self, std::uint64_t id) {
  auto& waiting = self->state.waiting;
  const auto it = std::ranges::find(waiting, id, &helper::id);
  if (it == waiting.end())
    return;
  auto done = std::move(it->done);
  waiting.erase(it);
  done(result<program_outcome>(
      fail(errc::overloaded, "no free slot within " + format_duration(helper_patience) +
                                 ": too many other senses and checks are running")));
}

void keep_facts(pointer self, std::vector<store::operation> writes) {
  if (writes.empty())
    return;
  ask<store_reply>(self, self->state.store, store_request{{}, std::move(writes)},
                   [self](result<store_reply> r) {
                     if (r)
                       return;
                     self->state.last_problem = "cannot store facts: " + to_string(r.error());
                     spdlog::warn("librarian: {}", self->state.last_problem);
                   });
}

namespace {

result<part_health> health_of(const state& s) {
  part_health h;
  h.last_error = s.last_problem;
  return h;
}

librarian_impl::behavior_type behavior(pointer self, node_context_ptr context,
                                       configuration_ptr configuration,
                                       state_writer_actor state_writer, workspace_actor workspace,
                                       store_actor store) {
  install_handlers(self, "librarian");
  auto& s = self->state;
  s.context = std::move(context);
  s.configuration = std::move(configuration);
  s.state_writer = std::move(state_writer);
  s.workspace = std::move(workspace);
  s.store = std::move(store);
  return {
      [self](gather_context& request) {
        // An error counts as a crash here: the cycle goes on without what could not be gathered.
        if (auto passed = faults::pass("librarian.gather"); !passed)
          throw std::runtime_error(passed.error().what);
        return gather(self, request);
      },
      [self](check_wake& request) {
        if (auto passed = faults::pass("librarian.wake"); !passed)
          throw std::runtime_error(passed.error().what);
        return check(self, request);
      },
      [self](health_query&) { return health_of(self->state); },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        self->state.configuration = m.configuration;
      },
      [self](helper_overdue& m) { give_up_waiting(self, m.id); },
      [self](program_ended& m) { on_helper_ended(self, m); },
      [self](program_look& m) { look_at_helper(self, m.number); },
  };
}

} // namespace

} // namespace librarian

librarian_actor spawn_librarian(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, state_writer_actor state_writer,
                                workspace_actor workspace, store_actor store) {
  return system.spawn(librarian::behavior, std::move(context), std::move(configuration),
                      std::move(state_writer), std::move(workspace), std::move(store));
}

} // namespace boyd
