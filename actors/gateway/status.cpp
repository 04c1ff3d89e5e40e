#include "actors/gateway/survey.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/time_zones.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::gateway_impl {

namespace {

std::string pause_of(const survey& all, const std::string& kernel, const std::string& agent) {
  for (const auto& p : all.pauses)
    if (p.kernel_id == kernel && p.agent_id == agent)
      return p.reason.empty() ? "no reason given" : p.reason;
  return {};
}

} // namespace

json agent_json(const survey& all, const config::kernel& k, const config::agent& a) {
  json out{{"kernel_id", k.kernel_id},
           {"agent_id", a.agent_id},
           {"enabled", a.enabled},
           {"priority", a.priority},
           {"executor", config::name_of(a.run)},
           {"running", 0},
           {"limit", a.max_concurrent},
           {"waiting", 0},
           {"last_status", nullptr},
           {"last_summary", nullptr},
           {"last_error", nullptr},
           {"last_finished_at", nullptr},
           {"last_failure_class", nullptr},
           {"paused", nullptr}};
  if (all.store_problem.empty())
    out["paused"] = pause_of(all, k.kernel_id, a.agent_id);
  for (const auto& d : all.dispatchers)
    if (d.kernel_id == k.kernel_id && d.agent_id == a.agent_id) {
      out["running"] = d.running;
      out["waiting"] = d.waiting;
    }
  for (const auto& d : all.latest)
    if (d.kernel_id == k.kernel_id && d.agent_id == a.agent_id) {
      out["last_status"] = name_of(d.status);
      out["last_summary"] = d.outcome.summary;
      out["last_error"] = d.outcome.error;
      out["last_finished_at"] = to_json(d.finished_at);
      out["last_failure_class"] = name_of(d.outcome.failure);
    }
  return out;
}

namespace {

json health_json(const survey& all) {
  json rows = json::array();
  for (const auto& [name, h] : all.health)
    rows.push_back({{"name", name},
                    {"ok", h.ok},
                    {"reason", h.reason},
                    {"since", to_json(h.since)},
                    {"notice", h.notice},
                    {"worker_restarts", h.worker_restarts},
                    {"last_error", h.last_error}});
  return rows;
}

std::string_view name_of(model::breaker_state s) {
  switch (s) {
  case model::breaker_state::open:
    return "open";
  case model::breaker_state::half_open:
    return "half_open";
  case model::breaker_state::closed:
    break;
  }
  return "closed";
}

json providers_json(const survey& all) {
  json rows = json::array();
  for (const auto& p : all.providers)
    rows.push_back({{"provider_id", p.provider_id},
                    {"limit", p.limit},
                    {"in_use", p.in_use},
                    {"waiting", p.waiting},
                    {"breaker", name_of(p.breaker)},
                    {"last_trouble", p.last_trouble}});
  return rows;
}

/// Executors belong to their dispatcher, as a keeper's workers to it.
void add_worker_restarts(const survey& all, const std::string& name, int& restarts,
                         std::string& why) {
  for (const auto& d : all.dispatchers)
    if (name == "dispatcher:" + d.kernel_id + "/" + d.agent_id) {
      restarts += d.worker_restarts;
      if (why.empty())
        why = d.last_worker_error;
    }
}

/// The helper process that starts the agents' programs: no actor, but it can die like one, and is
/// started again like one.
void add_process_host(const gateway_parts& p, json& rows) {
  const auto host = p.context->ports.processes->host();
  if (!host.has_host)
    return;
  rows.push_back({{"name", "process_host"},
                  {"state", !host.alive            ? "restarting"
                            : host.problem.empty() ? "running"
                                                   : "silent"},
                  {"restarts", host.restarts},
                  {"renewals", 0},
                  {"last_error", host.last_error},
                  {"depth", 1},
                  {"reason", host.problem}});
}

/// Without a node the parts are only those that answer this question: none of the node's lives. The
/// process host, which a command does without, stands where a node has it.
json stopped_json(const survey& all) {
  json rows = json::array();
  const auto add = [&](const std::string& name, int depth) {
    rows.push_back({{"name", name},
                    {"state", "stopped"},
                    {"restarts", 0},
                    {"renewals", 0},
                    {"last_error", ""},
                    {"depth", depth},
                    {"reason", ""}});
  };
  for (const auto& c : all.tree)
    add(c.name, c.depth);
  add("process_host", 1);
  return rows;
}

/// The tree says who lives; a living part that is not well is degraded.
json actors_json(const gateway_parts& p, const survey& all) {
  json rows = json::array();
  if (p.context->passive)
    return stopped_json(all);
  for (const auto& c : all.tree) {
    std::string state = c.state;
    std::string why = c.last_error;
    int restarts = c.restarts;
    if (auto it = all.health.find(c.name); it != all.health.end()) {
      restarts += it->second.worker_restarts;
      if (state == "running" && !it->second.ok) {
        state = "degraded";
        why = it->second.reason;
      } else if (why.empty()) {
        why = it->second.last_error;
      }
    }
    add_worker_restarts(all, c.name, restarts, why);
    rows.push_back({{"name", c.name},
                    {"state", state},
                    {"restarts", restarts},
                    {"renewals", c.renewals},
                    {"last_error", why},
                    {"depth", c.depth},
                    {"reason", c.reason}});
  }
  add_process_host(p, rows);
  return rows;
}

json restarts_json(const survey& all) {
  json rows = json::array();
  for (const auto& e : all.restarts)
    rows.push_back({{"at", to_json(std::optional(e.at))}, {"name", e.part}, {"cause", e.cause}});
  return rows;
}

/// What the kernel says; else (no node runs, or it is just being started) its schedule alone.
std::optional<utc_time> next_slot_of(const gateway_parts& p, const kernel_status& k) {
  const auto* settings = p.configuration->find_kernel(k.kernel_id);
  if (k.next_slot || settings == nullptr)
    return k.next_slot;
  const auto rule = plan::schedule_rule::make(settings->when, *p.context->ports.zones);
  return rule ? rule->next_after(p.context->ports.clock->now()) : std::nullopt;
}

/// What the kernel says; else (no node runs that would repeat it) what its cycles left.
std::string open_problem_of(const gateway_parts& p, const survey& all, const kernel_status& k) {
  if (!k.problem.empty() || !p.context->passive)
    return k.problem;
  std::string text;
  for (const auto& c : all.unfinished)
    if (c.kernel_id == k.kernel_id)
      text += (text.empty() ? "cycle " : "; cycle ") + c.cycle_id +
              " was interrupted and will be resumed by boyd node or boyd cycle";
  const auto open = all.effects.find(k.kernel_id);
  if (open == all.effects.end())
    return text;
  std::string_view lead = "the latest cycle is recorded, but ";
  for (const auto& problem : effects::behind_of(open->second)) {
    text += (text.empty() ? "" : "; ") + std::string(lead) + problem;
    lead = {};
  }
  return text;
}

/// Files of the kernel that the latest cycle could not read: a person has to mend them. What else
/// went wrong in a cycle has passed with it.
std::string unreadable_in(const cycle_record& latest) {
  std::string text;
  for (const auto part : split(latest.error, ';'))
    if (const auto why = trim(part);
        why.starts_with("perceive: ") && why.find(" cannot be read: ") != std::string_view::npos)
      text += (text.empty() ? "" : "; ") + std::string(why.substr(why.find(' ') + 1));
  return text;
}

std::string problem_of(const gateway_parts& p, const survey& all, const kernel_status& k,
                       const std::optional<cycle_record>& latest) {
  auto text = open_problem_of(p, all, k);
  return text.empty() && latest ? unreadable_in(*latest) : text;
}

json kernels_json(const gateway_parts& p, const survey& all) {
  json rows = json::array();
  for (const auto& k : all.kernels) {
    // The row, not the kernel's memory: a kernel that was just started may not have read it yet.
    auto row = all.cycles.find(k.kernel_id);
    const auto latest = row != all.cycles.end() ? std::optional(row->second) : k.latest;
    const auto paused = k.paused.empty() ? pause_of(all, k.kernel_id, {}) : k.paused;
    rows.push_back({{"kernel_id", k.kernel_id},
                    {"phase", k.phase},
                    {"cycle_id", k.cycle_id},
                    {"next_slot", to_json(next_slot_of(p, k))},
                    {"paused", paused},
                    {"problem", problem_of(p, all, k, latest)},
                    {"latest", latest ? to_json(*latest) : json(nullptr)}});
  }
  return rows;
}

/// A command that answers by itself is no node: what it could say of its process is nobody's.
json node_json(const gateway_parts& p, const survey& all) {
  const auto& c = *p.context;
  const char* state = c.passive ? "stopped" : all.draining() ? "draining" : "running";
  return {
      {"node_id", c.node_id},
      {"host", c.host},
      {"pid", c.passive ? json(nullptr) : json(c.pid)},
      {"version", c.version},
      {"started_at", c.passive ? json(nullptr) : to_json(std::optional(c.started_at))},
      {"home", c.home},
      {"store", p.started_with->node_settings.store},
      {"config", p.configuration->path},
      {"sandbox", c.passive ? json(nullptr) : json(exec::describe(c.ports.processes->sandbox()))},
      {"running", !c.passive},
      {"state", state},
      {"restart_needed", config::waiting_for_restart(*p.started_with, *p.configuration)}};
}

json status_json(const exchange& x, const survey& all) {
  const auto& p = x.self->state.parts;
  json queue;
  for (auto s : {dispatch_status::pending, dispatch_status::running, dispatch_status::done,
                 dispatch_status::failed, dispatch_status::cancelled}) {
    auto& count = queue[std::string(name_of(s))];
    if (auto it = all.queue.find(s); it != all.queue.end())
      count = it->second;
    else if (all.store_problem.empty())
      count = 0;
  }
  json holders = json::array();
  for (const auto& [name, n] : all.permits.holders)
    holders.push_back({{"name", name}, {"count", n}});
  json nodes = json::array();
  for (const auto& n : all.nodes)
    nodes.push_back({{"node_id", n.node_id},
                     {"host", n.host},
                     {"pid", n.pid},
                     {"last_seen", to_json(std::optional(n.last_seen))}});
  json agents = json::array();
  for (const auto& k : p.configuration->kernels)
    for (const auto& a : k.agents)
      agents.push_back(agent_json(all, k, a));
  return {{"node", node_json(p, all)},
          {"problems", problems_of(p, all)},
          {"kernels", kernels_json(p, all)},
          {"agents", std::move(agents)},
          {"actors", actors_json(p, all)},
          {"restarts", all.store_problem.empty() ? restarts_json(all) : json(nullptr)},
          {"queue", std::move(queue)},
          {"permits",
           {{"limit", all.permits.limit},
            {"in_use", all.permits.in_use},
            {"peak", all.permits.peak},
            {"holders", std::move(holders)}}},
          {"providers", providers_json(all)},
          {"approvals", approvals_json(all)},
          {"budgets", all.store_problem.empty() ? budgets_json(p, all) : json(nullptr)},
          {"reservations", all.store_problem.empty() ? reservations_json(all) : json(nullptr)},
          {"health", health_json(all)},
          {"nodes", all.store_problem.empty() ? std::move(nodes) : json(nullptr)},
          {"faults", armed_faults()}};
}

json ready_json(const survey& all) {
  json problems = json::array();
  if (all.draining())
    problems.push_back("stopping: waiting for " + all.running_attempts());
  for (const auto& [name, h] : all.health)
    if (!h.ok)
      problems.push_back(name + ": " + h.reason);
  // What a restart would not make better.
  json notices = json::array();
  for (const auto& [name, h] : all.health)
    if (!h.notice.empty())
      notices.push_back(name + ": " + h.notice);
  const bool ok = problems.empty();
  return {{"ok", ok}, {"problems", std::move(problems)}, {"notices", std::move(notices)}};
}

/// Answers with what `make` says of the survey; it is asked once for all who share that.
void reply_shared(const exchange_ptr& x, const std::string& verb,
                  json (*make)(const exchange&, const survey&)) {
  take_survey(x, [x, verb, make](survey& all) {
    auto made = all.answers.find(verb);
    if (made == all.answers.end()) {
      const auto body = make(*x, all);
      const bool well = verb != "ready" || body["ok"] == true;
      made = all.answers.emplace(verb, x->response(verb, body, well ? 200 : 503)).first;
    }
    x->reply_as(made->second);
  });
}

} // namespace

void get_status(exchange_ptr x) {
  reply_shared(x, "status", status_json);
}

void get_actors(exchange_ptr x) {
  reply_shared(x, "actors", [](const exchange& asked, const survey& all) {
    return json{{"items", actors_json(asked.self->state.parts, all)},
                {"restarts", all.store_problem.empty() ? restarts_json(all) : json(nullptr)}};
  });
}

void get_ready(exchange_ptr x) {
  reply_shared(x, "ready", [](const exchange&, const survey& all) { return ready_json(all); });
}

} // namespace boyd::gateway_impl
