#include "actors/gateway/survey.hpp"
#include "actors/support/ask.hpp"
#include "boyd/plan/next_run.hpp"
#include "boyd/plan/wake.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/time_zones.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::gateway_impl {

namespace {

/// Decisions that are read at least: the newest of each agent is looked for among them.
constexpr std::size_t least_decisions = 50;

/// What is told of a kernel's agents, gathered.
struct listing {
  exchange_ptr x;
  const config::kernel* kernel = nullptr;
  survey all;
  store::list_decisions::reply decisions;
  plan::plan_input input; ///< as for a plan, without the texts
  std::vector<plan::quiet_rule> quiet;
  std::map<std::string, utc_time> wake_due; ///< of agents whose check is backed off
};

using listing_ptr = std::shared_ptr<listing>;

json schedule_json(const exchange& x, const config::schedule& s) {
  const auto& c = *x.self->state.parts.context;
  json out{{"expression", s.expression}, {"tz", s.tz}, {"next_slot", nullptr}};
  if (auto rule = plan::schedule_rule::make(s, *c.ports.zones))
    out["next_slot"] = to_json(rule->next_after(c.ports.clock->now()));
  return out;
}

std::optional<utc_time> next_run_of(const listing& l, const config::agent& a) {
  const auto& zones = *l.x->self->state.parts.context->ports.zones;
  const auto cycles = plan::schedule_rule::make(l.kernel->when, zones);
  if (!cycles)
    return std::nullopt;
  const auto due = l.wake_due.find(a.agent_id);
  return plan::next_run(*l.kernel, a, l.input, *cycles, l.quiet,
                        due == l.wake_due.end() ? std::nullopt : std::optional(due->second));
}

json detailed_agent(const listing& l, const config::agent& a) {
  auto out = agent_json(l.all, *l.kernel, a);
  out["timeout_ms"] = a.timeout.count();
  out["cooldown_ms"] = a.cooldown.count();
  out["max_attempts"] = a.retry.max_attempts;
  out["tools"] = a.tools;
  out["schedule"] = a.when ? schedule_json(*l.x, *a.when) : json(nullptr);
  out["next_run"] = to_json(next_run_of(l, a));
  out["last_decision"] = nullptr;
  for (const auto& row : l.decisions) {
    if (row.decision.agent_id != a.agent_id)
      continue;
    out["last_decision"] = to_json(row.decision);
    out["last_decision"]["at"] = to_json(std::optional(row.decided_at));
    break;
  }
  return out;
}

/// Until when the checks of agents whose inputs do not change are backed off. A change that led to
/// no dispatch yet is not waited with.
void take_wake(listing& l, const store::get_facts::reply& memories,
               const store::get_facts::reply& seen) {
  for (const auto& a : l.kernel->agents) {
    const auto text = memories.find(a.agent_id);
    const auto memory =
        a.wake && text != memories.end() ? plan::read_wake_memory(text->second) : std::nullopt;
    if (!memory)
      continue;
    const auto latest = std::ranges::find_if(l.all.latest, [&](const dispatch& d) {
      return d.kernel_id == l.kernel->kernel_id && d.agent_id == a.agent_id;
    });
    const auto change = seen.find(a.agent_id);
    if (change != seen.end() && latest != l.all.latest.end() &&
        change->second == latest->dispatch_id)
      continue;
    l.wake_due[a.agent_id] = plan::wake_due_at(*memory, *a.wake, l.input.now);
  }
}

/// The questions of read_rows.
struct asked_rows {
  store_ticket<store::list_decisions> decisions;
  store_ticket<store::get_facts> slots, since, wake, wake_seen;
};

result<void> take_rows(listing& l, const asked_rows& asked, store_reply& r) {
  auto decisions = asked.decisions.of(r);
  const auto slots = asked.slots.of(r);
  const auto kept = asked.since.of(r);
  const auto memories = asked.wake.of(r);
  const auto seen = asked.wake_seen.of(r);
  if (!decisions)
    return fail(decisions.error());
  for (const auto* facts : {&slots, &kept, &memories, &seen})
    if (!*facts)
      return fail(facts->error());
  l.decisions = std::move(*decisions);
  l.input.agent_slots = plan::read_agent_slots(*slots);
  l.input.since = since_of(*kept, l.input.now);
  l.input.pauses = l.all.pauses;
  for (const auto& d : l.all.latest)
    if (d.kernel_id == l.kernel->kernel_id)
      l.input.last_dispatched_at[d.agent_id] = d.created_at;
  take_wake(l, *memories, *seen);
  return {};
}

void read_schedules(listing& l) {
  const auto& zones = *l.x->self->state.parts.context->ports.zones;
  if (auto quiet = plan::make_quiet_rules(l.kernel->quiet, zones))
    l.quiet = std::move(*quiet);
  for (const auto& a : l.kernel->agents)
    if (a.when)
      if (auto rule = plan::schedule_rule::make(*a.when, zones))
        l.input.schedules.emplace(a.agent_id, std::move(*rule));
}

void reply_agents(const listing& l) {
  json items = json::array();
  for (const auto& a : l.kernel->agents)
    items.push_back(detailed_agent(l, a));
  l.x->reply("agents", {{"kernel_id", l.kernel->kernel_id},
                        {"schedule", schedule_json(*l.x, l.kernel->when)},
                        {"items", std::move(items)}});
}

void read_rows(const listing_ptr& l) {
  const auto& id = l->kernel->kernel_id;
  store::list_decisions newest;
  newest.kernel_id = id;
  newest.limit = std::max(l->kernel->agents.size() * 2, least_decisions);
  store_request request;
  const auto facts = [&](const char* scope) { return request.add(store::get_facts{scope + id}); };
  const asked_rows asked{request.add(std::move(newest)), facts("slots:"), facts("kernel:"),
                         facts("wake:"), facts("wake_seen:")};
  ask<store_reply>(l->x->self, l->x->self->state.parts.store, std::move(request),
                   [l, asked](result<store_reply> r) {
                     if (!r)
                       return l->x->fail_with(r.error());
                     if (auto taken = take_rows(*l, asked, *r); !taken)
                       return l->x->fail_with(taken.error());
                     reply_agents(*l);
                   });
}

} // namespace

void get_agents(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  auto l = std::make_shared<listing>();
  l->x = x;
  l->kernel = kernel;
  l->input.now = x->self->state.parts.context->ports.clock->now();
  read_schedules(*l);
  take_survey(x, [l](survey& all) {
    l->all = all; // others may share it
    read_rows(l);
  });
}

} // namespace boyd::gateway_impl
