#include "actors/context/core.hpp"
#include "actors/gateway/context.hpp"
#include "actors/librarian/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/context_level.hpp"
#include "boyd/memory/tokens.hpp"
#include "boyd/plan/agent_prompt.hpp"
#include "boyd/plan/next_run.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/recent_results.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/queue/spent.hpp"

#include <charconv>
#include <memory>
#include <utility>
#include <variant>

namespace boyd::gateway_impl {

namespace {

/// What a dry run reads: as a cycle's perceive and orient, without running senses or wake checks:
/// {SENSES} is what they said last.
struct dry_run {
  exchange_ptr x;
  const config::kernel* kernel = nullptr;
  plan::plan_input input;
  std::optional<reader_identity> reader; ///< of the one agent that is asked about
  std::optional<plan::schedule_rule> cycles;
  std::vector<plan::quiet_rule> quiet;
  json file = json::object(); ///< of the configuration: {path, changes, has_errors}
};

using dry_run_ptr = std::shared_ptr<dry_run>;

/// Who decides. A dry run asks no model: what it shows is what one could choose from, and what runs
/// when it has no answer.
json planner_json(const config::kernel& kernel) {
  const auto& p = kernel.plan;
  if (p.type != config::planner::type_t::llm)
    return {{"type", "static"}};
  return {{"type", "llm"},
          {"provider", p.ask.provider_id},
          {"model", p.ask.model},
          {"max_dispatches", p.max_dispatches}};
}

bool is_asked_about(const dry_run& run, const std::string& agent_id) {
  return !run.reader || run.reader->agent->agent_id == agent_id;
}

/// Of an agent that waits for a time, which that is, and the first cycle from then on.
json plan_decision_json(const dry_run& run, const agent_decision& d) {
  auto out = to_json(d);
  const auto* agent = config::find_agent(*run.kernel, d.agent_id);
  const bool waits = d.reason == "schedule" || d.reason == "cooldown";
  std::optional<utc_time> due;
  std::optional<utc_time> cycle;
  if (agent != nullptr && waits)
    due = plan::ready_at(*run.kernel, *agent, run.input);
  if (due && run.cycles)
    cycle = plan::next_run(*run.kernel, *agent, run.input, *run.cycles, run.quiet, std::nullopt);
  out["due_at"] = to_json(due);
  out["runs_at"] = to_json(cycle);
  return out;
}

/// `agents`: what the one agent that is asked about would be told; null: all are.
void reply_plan(const dry_run_ptr& run, const plan::plan_output& output, json agents) {
  json decisions = json::array();
  for (const auto& d : output.decisions)
    if (is_asked_about(*run, d.agent_id))
      decisions.push_back(plan_decision_json(*run, d));
  json specs = json::array();
  for (const auto& s : output.specs)
    if (is_asked_about(*run, s.agent_id))
      specs.push_back({{"agent_id", s.agent_id},
                       {"priority", s.priority},
                       {"prompt", s.prompt},
                       {"prompt_bytes", s.prompt.size()},
                       {"prompt_characters", count_characters(s.prompt)}});
  json body{{"kernel_id", run->kernel->kernel_id},
            {"planner", planner_json(*run->kernel)},
            {"configuration", run->file},
            {"decisions", std::move(decisions)},
            {"specs", std::move(specs)}};
  if (!agents.is_null())
    body["agents"] = std::move(agents);
  run->x->reply("plan", std::move(body));
}

/// A command without a prompt reads nothing that it is given, and a script nothing at all.
bool takes_prompt(const config::agent& a) {
  return std::holds_alternative<config::chat_executor>(a.run) ||
         std::holds_alternative<config::agent_cli_executor>(a.run) ||
         (std::holds_alternative<config::command_executor>(a.run) && !a.prompt.empty());
}

/// The prompt of a first attempt, whole.
json agent_json_of(const dry_run& run, const plan::agent_prompt& prompt,
                   const context_items& read) {
  const auto& items = read.items;
  const auto& agent = *run.reader->agent;
  const auto block = context::make_block(items, {agent.reads.budget_tokens, agent.reads.strategy});
  const auto whole = exec::make_attempt_prompt(prompt.text, prompt.metadata_json,
                                               exec::context_level::full, block.text, read.skills);
  const auto missing = missing_items(items);
  return {{"agent_id", agent.agent_id},
          {"workspace", run.reader->root},
          {"prompt", whole},
          {"prompt_tokens", memory::estimate_tokens(whole)},
          {"takes_prompt", takes_prompt(agent)},
          {"problem", missing.empty() ? "" : "cannot read required context: " + missing},
          {"skills", read.skill_names},
          {"context", context_json(items, block)}};
}

/// What the agent would read and be told now, due or not.
void show_agent(const dry_run_ptr& run, const plan::plan_output& output) {
  const auto& agent = *run->reader->agent;
  auto prompt = plan::make_prompt(agent, run->input.values, run->input.buffer);
  if (!prompt)
    return run->x->fail_with(prompt.error());
  memory_wish wish{question_of_run(agent, prompt->metadata_json),
                   recalled_entries(*run->x->configuration, run->reader->kernel->kernel_id, agent),
                   learning_of(*run->x->configuration, run->reader->kernel->kernel_id, agent)};
  read_items_for(run->x, *run->reader, references_of_run(agent.reads, prompt->metadata_json),
                 std::move(wish), [run, output, prompt = *prompt](result<context_items> r) {
                   if (!r)
                     return run->x->fail_with(r.error());
                   reply_plan(run, output, json::array({agent_json_of(*run, prompt, *r)}));
                 });
}

void decide(const dry_run_ptr& run) {
  const auto& p = run->x->self->state.parts;
  // A check has side effects of its own; a dry run shows the agents as if something had changed.
  for (const auto& id : plan::wake_candidates(*run->kernel, run->input))
    run->input.wake[id] = {plan::wake_kind::changed, "not checked by a dry run"};
  ask<plan::plan_output>(
      run->x->self, p.planner,
      plan_request{{}, p.configuration, run->kernel->kernel_id, run->input, true, {}},
      [run](result<plan::plan_output> r) {
        if (!r)
          return run->x->fail_with(r.error());
        if (run->reader)
          return show_agent(run, *r);
        reply_plan(run, *r, nullptr);
      });
}

void read_rows(const dry_run_ptr& run) {
  const auto& id = run->kernel->kernel_id;
  store::list_dispatches newest;
  newest.kernel_id = id;
  newest.ended_only = true;
  newest.limit = limits::recent_results;
  store_request request;
  const auto latest = request.add(store::latest_per_agent{id});
  const auto recent = request.add(std::move(newest));
  const auto pauses = request.add(store::list_pauses{id});
  const auto slots = request.add(store::get_facts{"slots:" + id});
  const auto since = request.add(store::get_facts{"kernel:" + id});
  const auto senses = request.add(store::get_facts{"sense:" + id});
  std::optional<store_ticket<store::sum_spend>> spent;
  if (queue::has_budgets(*run->kernel))
    spent = request.add(queue::todays_totals());
  ask<store_reply>(run->x->self, run->x->self->state.parts.store, std::move(request),
                   [=](result<store_reply> r) {
                     if (!r)
                       return run->x->fail_with(r.error());
                     auto& input = run->input;
                     if (auto rows = latest.of(*r))
                       input.latest = std::move(*rows);
                     if (auto rows = recent.of(*r))
                       input.values.recent_results = plan::render_recent_results(*rows);
                     if (auto rows = pauses.of(*r))
                       input.pauses = std::move(*rows);
                     if (auto facts = slots.of(*r))
                       input.agent_slots = plan::read_agent_slots(*facts);
                     if (auto facts = since.of(*r))
                       input.since = since_of(*facts, input.now);
                     if (auto facts = senses.of(*r))
                       input.values.senses =
                           render_senses(run->kernel->senses, read_sense_memories(*facts));
                     const auto& p = run->x->self->state.parts;
                     if (spent)
                       if (auto totals = spent->of(*r))
                         input.spent = queue::spent_agents(*p.configuration, *run->kernel,
                                                           p.context->node_id, *totals);
                     for (const auto& d : input.latest)
                       input.last_dispatched_at[d.agent_id] = d.created_at;
                     decide(run);
                   });
}

void read_files(const dry_run_ptr& run) {
  state_request request;
  request.what =
      read_kernel_files{run->kernel->kernel_id,
                        {"STATE.md", "GOAL.md", "MEMORY.md", "SOUL.md", context::buffer_file}};
  ask<state_reply>(run->x->self, run->x->self->state.parts.state_writer, std::move(request),
                   [run](result<state_reply> r) {
                     if (!r)
                       return run->x->fail_with(r.error());
                     auto& v = run->input.values;
                     const bool has_buffer = !r->unreadable.contains(context::buffer_file);
                     if (const auto kept = context::read_buffer(r->files[context::buffer_file]);
                         has_buffer && kept)
                       run->input.buffer = context::references_of(*kept);
                     (void)note_unreadable(r->unreadable, r->files);
                     v.state = r->files["STATE.md"];
                     v.goal = r->files["GOAL.md"];
                     v.memory = memory_text(r->files, run->kernel->memory.budget_tokens);
                     read_rows(run);
                   });
}

/// Whether the file has changed since the node read it. A file that nobody can read just now says
/// nothing: status tells of it.
void read_file_of(const dry_run_ptr& run) {
  const auto& p = run->x->self->state.parts;
  const auto& path = run->x->configuration->path;
  run->file = {{"path", path}, {"changes", json::array()}, {"has_errors", false}};
  if (!p.context->parse_configuration)
    return read_files(run);
  ask<workspace_reply>(run->x->self, p.workspace, workspace_request{{}, read_configuration{path}},
                       [run](const result<workspace_reply>& r) {
                         if (r && r->configuration)
                           run->file["changes"] =
                               config::changes(*run->x->configuration, **r->configuration);
                         else if (r)
                           run->file["has_errors"] = true;
                         read_files(run);
                       });
}

} // namespace

utc_time since_of(const store::get_facts::reply& facts, utc_time now) {
  const auto it = facts.find("since");
  if (it == facts.end())
    return now;
  std::int64_t ms = 0;
  const auto& text = it->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), ms);
  return read.ec == std::errc{} ? from_unix_ms(ms) : now;
}

void get_plan(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const auto& context = *x->self->state.parts.context;
  auto run = std::make_shared<dry_run>();
  if (const auto agent = x->query("agent"); !agent.empty()) {
    run->reader = reader_of(x, *kernel, agent);
    if (!run->reader)
      return;
  }
  run->x = x;
  run->kernel = kernel;
  run->input.cycle_id = "dry-run";
  run->input.now = context.ports.clock->now();
  run->input.values.time = format_rfc3339(run->input.now);
  run->input.make_id = [] { return std::string("dry-run"); };
  if (auto cycles = plan::schedule_rule::make(kernel->when, *context.ports.zones))
    run->cycles = std::move(*cycles);
  if (auto quiet = plan::make_quiet_rules(kernel->quiet, *context.ports.zones)) {
    run->quiet = std::move(*quiet);
    run->input.quiet = plan::is_quiet(run->quiet, run->input.now);
  }
  for (const auto& a : kernel->agents)
    if (a.when)
      if (auto rule = plan::schedule_rule::make(*a.when, *context.ports.zones))
        run->input.schedules.emplace(a.agent_id, std::move(*rule));
  read_file_of(run);
}

} // namespace boyd::gateway_impl
