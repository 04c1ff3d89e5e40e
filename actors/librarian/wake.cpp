#include "actors/librarian/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/ports/clock.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace boyd::librarian {

namespace {

/// An agent that has no dispatch yet.
constexpr const char* no_dispatch = "none";

std::string memory_scope(const std::string& kernel_id) {
  return "wake:" + kernel_id;
}

std::string seen_scope(const std::string& kernel_id) {
  return "wake_seen:" + kernel_id;
}

void finish(pointer self, const wake_check_ptr& c) {
  self->state.checks.erase(c);
  c->promise.deliver(result<wake_results>(c->reply));
  keep_facts(self, std::move(c->writes));
}

void one_done(pointer self, const wake_check_ptr& c) {
  if (--c->open == 0)
    finish(self, c);
}

void answered(pointer self, const wake_check_ptr& c, const std::string& agent_id,
              result<std::string> hash) {
  auto& answer = c->reply.agents[agent_id];
  if (!hash) {
    answer = {plan::wake_kind::error,
              config::redact_text(to_string(hash.error()), self->state.configuration->secrets)};
    self->state.last_problem = "wake check of " + agent_id + ": " + answer.detail;
    spdlog::warn("librarian: kernel {}: {}", c->kernel.kernel_id, self->state.last_problem);
  } else {
    const auto known = c->memory.find(agent_id);
    auto step = plan::advance_wake(
        known == c->memory.end() ? std::nullopt : std::optional(known->second), *hash, c->now);
    answer = step.answer;
    if (!c->by_hand || answer.kind != plan::wake_kind::unchanged)
      c->writes.emplace_back(store::put_fact{memory_scope(c->kernel.kernel_id), agent_id,
                                             plan::write_wake_memory(step.memory)});
    if (answer.kind == plan::wake_kind::changed)
      c->writes.emplace_back(
          store::put_fact{seen_scope(c->kernel.kernel_id), agent_id, c->latest[agent_id]});
  }
  one_done(self, c);
}

void hash_files(pointer self, const wake_check_ptr& c, const config::agent& agent) {
  ask<workspace_reply>(
      self, self->state.workspace, workspace_request{{}, hash_inputs{agent.wake->inputs}},
      [self, c, id = agent.agent_id](result<workspace_reply> r) {
        answered(self, c, id, r ? result<std::string>(r->text) : fail(std::move(r.error())));
      });
}

void hash_output(pointer self, const wake_check_ptr& c, const config::agent& agent) {
  config::command_executor surroundings;
  if (const auto* command = std::get_if<config::command_executor>(&agent.run))
    surroundings = *command;
  run_helper(self, c->kernel, agent.wake->argv, surroundings, agent.agent_id, agent.wake->timeout,
             limits::output_bytes, [self, c, id = agent.agent_id](result<program_outcome> outcome) {
               result<std::string> hash;
               if (!outcome)
                 hash = fail(std::move(outcome.error()));
               else if (auto problem = problem_of(*outcome); !problem.empty())
                 hash = fail(errc::spawn_failed, std::move(problem));
               else
                 hash = hash_of(*outcome);
               answered(self, c, id, std::move(hash));
             });
}

void evaluate(pointer self, const wake_check_ptr& c, const std::string& agent_id) {
  const auto* agent = config::find_agent(c->kernel, agent_id);
  auto& answer = c->reply.agents[agent_id];
  if (agent == nullptr || !agent->wake)
    return; // nothing to check: "changed", it runs
  // A change that was seen but led to no dispatch (a crash, a store that was away) still counts.
  if (const auto seen = c->seen.find(agent_id);
      seen != c->seen.end() && seen->second == c->latest[agent_id]) {
    answer = {plan::wake_kind::changed, "not dispatched since the last change"};
    return;
  }
  if (const auto known = c->memory.find(agent_id); known != c->memory.end() && !c->by_hand) {
    const auto due = plan::wake_due_at(known->second, *agent->wake, c->now);
    if (due > c->now) {
      answer = {plan::wake_kind::waiting, "next check at " + format_rfc3339(due)};
      return;
    }
  }
  ++c->open;
  if (agent->wake->argv.empty())
    hash_files(self, c, *agent);
  else
    hash_output(self, c, *agent);
}

/// What is remembered of the checks of a kernel's agents.
struct remembered {
  store_ticket<store::get_facts> memory, seen;
  store_ticket<store::latest_per_agent> latest;
};

void recall(wake_check& c, const remembered& asked, store_reply& replies) {
  if (const auto memory = asked.memory.of(replies))
    for (const auto& [agent, text] : *memory)
      if (auto m = plan::read_wake_memory(text))
        c.memory[agent] = *m;
  if (auto seen = asked.seen.of(replies))
    c.seen = std::move(*seen);
  if (const auto rows = asked.latest.of(replies))
    for (const auto& row : *rows)
      c.latest[row.agent_id] = row.dispatch_id;
}

} // namespace

wake_promise check(pointer self, const check_wake& request) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<wake_results>>();
  const auto* kernel = s.configuration ? s.configuration->find_kernel(request.kernel_id) : nullptr;
  if (kernel == nullptr) {
    promise.deliver(result<wake_results>(
        fail(errc::not_found, "no such kernel in the configuration", request.kernel_id)));
    return promise;
  }
  auto c = std::make_shared<wake_check>();
  c->kernel = *kernel;
  c->agent_ids = request.agent_ids;
  c->by_hand = request.by_hand;
  c->now = s.context->ports.clock->now();
  c->promise = promise;
  s.checks.insert(c);
  for (const auto& id : c->agent_ids)
    c->latest[id] = no_dispatch;
  const auto& id = request.kernel_id;
  store_request facts;
  const remembered asked{facts.add(store::get_facts{memory_scope(id)}),
                         facts.add(store::get_facts{seen_scope(id)}),
                         facts.add(store::latest_per_agent{id})};
  ask<store_reply>(self, s.store, std::move(facts), [self, c, asked](result<store_reply> r) {
    // Without memory every check counts as the first: agents run rather than sleep.
    if (r)
      recall(*c, asked, *r);
    else
      self->state.last_problem = "cannot store the results of wake checks: " + to_string(r.error());
    c->open = 1;
    for (const auto& agent_id : c->agent_ids)
      evaluate(self, c, agent_id);
    one_done(self, c);
  });
  return promise;
}

} // namespace boyd::librarian
