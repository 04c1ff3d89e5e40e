#include "actors/librarian/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/ports/clock.hpp"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

namespace boyd::librarian {

namespace {

void finish(pointer self, const gathering_ptr& g) {
  auto& s = self->state;
  g->reply.senses = render_senses(g->kernel.senses, g->memory);
  for (auto& p : sense_problems(g->kernel.senses, g->memory))
    g->reply.problems.push_back(std::move(p));
  // What goes on from cycle to cycle is told of when it begins; each record has it.
  auto& told = s.told_problems[g->kernel.kernel_id];
  for (const auto& p : g->reply.problems) {
    s.last_problem = p;
    if (!told.contains(p))
      spdlog::warn("librarian: kernel {}: {}", g->kernel.kernel_id, p);
  }
  told = {g->reply.problems.begin(), g->reply.problems.end()};
  s.senses[g->kernel.kernel_id] = g->memory;
  s.gatherings.erase(g->kernel.kernel_id);
  for (auto& p : std::exchange(g->waiting, {}))
    p.deliver(result<gathered_context>(g->reply));
  std::vector<store::operation> writes;
  for (const auto& name : g->fresh)
    writes.emplace_back(store::put_fact{"sense:" + g->kernel.kernel_id, name,
                                        write_sense_memory(g->memory.at(name))});
  keep_facts(self, std::move(writes));
}

void one_done(pointer self, const gathering_ptr& g) {
  if (--g->open == 0)
    finish(self, g);
}

result<program_outcome> without_secrets(pointer self, result<program_outcome> outcome) {
  const auto& secrets = self->state.configuration->secrets;
  if (!outcome) {
    outcome.error().what = config::redact_text(std::move(outcome.error().what), secrets);
    return outcome;
  }
  outcome->output = config::redact_text(std::move(outcome->output), secrets);
  outcome->diagnostics = config::redact_text(std::move(outcome->diagnostics), secrets);
  outcome->exit.start_error = config::redact_text(std::move(outcome->exit.start_error), secrets);
  return outcome;
}

std::optional<sense_memory> memory_of(const gathering& g, const std::string& name) {
  const auto it = g.memory.find(name);
  return it == g.memory.end() ? std::nullopt : std::optional(it->second);
}

void run_due_senses(pointer self, const gathering_ptr& g) {
  for (const auto& sense : g->kernel.senses) {
    if (!is_due(sense, memory_of(*g, sense.name), g->now))
      continue;
    ++g->open;
    config::command_executor surroundings;
    surroundings.cwd = sense.cwd;
    run_helper(self, g->kernel, sense.argv, surroundings, {}, sense.timeout, sense.output_bytes,
               [self, g, name = sense.name](result<program_outcome> outcome) {
                 // What a sense said stands in prompts, and why it failed in the log and STATE.md.
                 outcome = without_secrets(self, std::move(outcome));
                 g->memory[name] = after_run(memory_of(*g, name), outcome, g->now);
                 g->fresh.push_back(name);
                 one_done(self, g);
               });
  }
}

/// Without it the agents run all the same, and the record says what they had to do without.
void read_buffer_into(gathered_context& reply, const std::map<std::string, error>& unreadable,
                      std::map<std::string, std::string>& files) {
  if (unreadable.contains(context::buffer_file))
    return; // note_unreadable has told of it
  const auto kept = context::read_buffer(files[context::buffer_file]);
  if (kept)
    reply.buffer = context::references_of(*kept);
  else
    reply.problems.push_back(to_string(kept.error()));
}

void read_files(pointer self, const gathering_ptr& g) {
  ++g->open;
  state_request request{
      {},
      read_kernel_files{g->kernel.kernel_id,
                        {"GOAL.md", "MEMORY.md", "SOUL.md", context::buffer_file}}};
  ask<state_reply>(
      self, self->state.state_writer, std::move(request), [self, g](result<state_reply> r) {
        std::map<std::string, std::string> files;
        if (r) {
          files = std::move(r->files);
          for (auto& p : note_unreadable(r->unreadable, files))
            g->reply.problems.push_back(std::move(p));
        } else {
          for (const char* name : {"GOAL.md", "MEMORY.md"})
            files[name] = unreadable_text(name, r.error());
          g->reply.problems.push_back("goal and memory: " + to_string(r.error()));
        }
        read_buffer_into(g->reply, r ? r->unreadable : std::map<std::string, error>{}, files);
        g->reply.goal = files["GOAL.md"];
        g->reply.memory = memory_text(files, g->kernel.memory.budget_tokens);
        one_done(self, g);
      });
}

void start(pointer self, const gathering_ptr& g) {
  // Held open until everything is under way: a helper may be refused at once.
  g->open = 1;
  read_files(self, g);
  if (g->kernel.senses.empty()) {
    one_done(self, g);
    return;
  }
  g->memory = self->state.senses[g->kernel.kernel_id];
  ask_store(self, self->state.store, store::get_facts{"sense:" + g->kernel.kernel_id},
            [self, g](result<store::get_facts::reply> facts) {
              if (facts)
                g->memory = read_sense_memories(*facts);
              else
                g->reply.problems.push_back("cannot read earlier results of the senses: " +
                                            to_string(facts.error()));
              run_due_senses(self, g);
              one_done(self, g);
            });
}

} // namespace

context_promise gather(pointer self, const gather_context& request) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<gathered_context>>();
  if (auto it = s.gatherings.find(request.kernel_id); it != s.gatherings.end()) {
    it->second->waiting.push_back(promise);
    return promise;
  }
  const auto* kernel = s.configuration ? s.configuration->find_kernel(request.kernel_id) : nullptr;
  if (kernel == nullptr) {
    promise.deliver(result<gathered_context>(
        fail(errc::not_found, "no such kernel in the configuration", request.kernel_id)));
    return promise;
  }
  auto g = std::make_shared<gathering>();
  g->kernel = *kernel;
  g->now = s.context->ports.clock->now();
  g->waiting.push_back(promise);
  s.gatherings[request.kernel_id] = g;
  start(self, g);
  return promise;
}

} // namespace boyd::librarian
