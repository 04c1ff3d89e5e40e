#include "actors/gateway/state.hpp"
#include "actors/node/reload.hpp"
#include "actors/support/ask.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/state/untold.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace boyd::gateway_impl {

namespace {

/// A part that does not answer within this is shown as it is: silent.
constexpr milliseconds part_limit = 2s;

/// What is gathered for `status` and `agents`, from all parts at once.
struct survey {
  std::vector<child_status> tree;
  std::map<std::string, part_health> health;
  std::vector<dispatcher_status> dispatchers;
  permits_status permits;
  std::vector<kernel_status> kernels;
  std::map<dispatch_status, std::uint64_t> queue;
  std::vector<dispatch> latest;
  std::map<std::string, cycle_record> cycles;  ///< the latest recorded one of each kernel
  std::map<std::string, state::untold> untold; ///< of this node's kernels
  /// Cycles that this node began and did not record; with a living node they just run.
  std::vector<cycle_record> unfinished;
  std::vector<pause_record> pauses;
  std::vector<store::list_nodes::row> nodes;
  std::string store_problem;
  std::size_t missing = 1;
  std::function<void(survey&)> done;

  void one_less() {
    if (--missing == 0)
      done(*this);
  }
};

using survey_ptr = std::shared_ptr<survey>;

template <class Handle>
void ask_health(const exchange_ptr& x, const survey_ptr& all, const std::string& name,
                const Handle& part) {
  ++all->missing;
  ask<part_health>(
      x->self, part, health_query{},
      [all, name](result<part_health> r) {
        if (r) {
          all->health[name] = std::move(*r);
        } else {
          all->health[name].ok = false;
          all->health[name].reason = to_string(r.error());
        }
        all->one_less();
      },
      part_limit);
}

void ask_parts(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  ask_health(x, all, "store", p.store);
  ask_health(x, all, "permits", p.permits);
  ask_health(x, all, "workspace", p.workspace);
  ask_health(x, all, "state_writer", p.state_writer);
  ask_health(x, all, "git_committer", p.git_committer);
  ask_health(x, all, "graph_recorder", p.graph_recorder);
  ask_health(x, all, "dispatchers", p.dispatchers);
  ask_health(x, all, "librarian", p.librarian);
  ask_health(x, all, "planner", p.planner);
  for (const auto& [id, k] : p.kernels)
    ask_health(x, all, "kernel:" + id, k);
}

void ask_actors(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  all->missing += 3;
  ask<tree_reply>(
      x->self, p.tree, tree_query{},
      [all](result<tree_reply> r) {
        if (r)
          all->tree = std::move(r->children);
        all->one_less();
      },
      part_limit * 2);
  ask<dispatchers_reply>(
      x->self, p.dispatchers, dispatchers_query{},
      [all](result<dispatchers_reply> r) {
        if (r)
          all->dispatchers = std::move(r->dispatchers);
        all->one_less();
      },
      part_limit * 2);
  ask<permits_status>(
      x->self, p.permits, permits_query{},
      [all](result<permits_status> r) {
        if (r)
          all->permits = std::move(*r);
        all->one_less();
      },
      part_limit);
  for (const auto& [id, k] : p.kernels) {
    ++all->missing;
    ask<kernel_status>(
        x->self, k, kernel_query{},
        [all](result<kernel_status> r) {
          if (r) {
            // In one order, whoever answers first.
            const auto place =
                std::ranges::lower_bound(all->kernels, r->kernel_id, {}, &kernel_status::kernel_id);
            all->kernels.insert(place, std::move(*r));
          }
          all->one_less();
        },
        part_limit);
  }
}

/// What ask_rows asks the store: of all, and then of each kernel.
constexpr std::size_t fixed_questions = 3;
constexpr std::size_t questions_of_a_kernel = 4;
/// Interrupted cycles are the newest ones; few can be under way at once.
constexpr std::size_t cycles_searched = 16;

void ask_rows(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  store_request request;
  request.operations.emplace_back(store::count_by_status{});
  request.operations.emplace_back(store::list_pauses{});
  request.operations.emplace_back(store::list_nodes{});
  for (const auto& k : p.configuration->kernels) {
    request.operations.emplace_back(store::latest_per_agent{k.kernel_id});
    store::list_cycles newest;
    newest.kernel_id = k.kernel_id;
    newest.limit = 1;
    request.operations.emplace_back(newest);
    request.operations.emplace_back(store::get_facts{state::untold_scope(k.kernel_id)});
    newest = {};
    newest.kernel_id = k.kernel_id;
    newest.include_running = true;
    newest.limit = cycles_searched;
    request.operations.emplace_back(std::move(newest));
  }
  ++all->missing;
  ask<store_reply>(
      x->self, p.store, std::move(request),
      [all, node = p.context->node_id, configuration = p.configuration](result<store_reply> r) {
        if (!r) {
          all->store_problem = to_string(r.error());
          return all->one_less();
        }
        if (auto q = reply_of<store::count_by_status>(r->values[0]))
          all->queue = std::move(*q);
        if (auto q = reply_of<store::list_pauses>(r->values[1]))
          all->pauses = std::move(*q);
        if (auto q = reply_of<store::list_nodes>(r->values[2]))
          all->nodes = std::move(*q);
        auto i = fixed_questions;
        for (const auto& k : configuration->kernels) {
          if (auto rows = reply_of<store::latest_per_agent>(r->values[i]))
            all->latest.insert(all->latest.end(), rows->begin(), rows->end());
          if (auto rows = reply_of<store::list_cycles>(r->values[i + 1]); rows && !rows->empty())
            all->cycles.emplace(k.kernel_id, rows->front());
          if (auto facts = reply_of<store::get_facts>(r->values[i + 2]); facts)
            if (auto left = facts->find(node); left != facts->end())
              all->untold[k.kernel_id] = state::parse_untold(left->second);
          if (auto rows = reply_of<store::list_cycles>(r->values[i + 3]); rows)
            std::ranges::copy_if(*rows, std::back_inserter(all->unfinished), [&](const auto& c) {
              return c.status == cycle_status::running && c.node_id == node;
            });
          i += questions_of_a_kernel;
        }
        all->one_less();
      },
      part_limit * 2);
}

/// A part that does not run is not well, and its supervisor knows why better than its silence.
void add_absent(survey& all) {
  for (const auto& c : all.tree)
    if (c.state == "parked" || c.state == "silent") {
      auto& h = all.health[c.name];
      h.ok = false;
      h.reason = c.state + ": " + c.reason;
      h.last_error = c.last_error;
    }
}

void take_survey(const exchange_ptr& x, std::function<void(survey&)> done) {
  auto all = std::make_shared<survey>();
  all->done = [done = std::move(done)](survey& taken) {
    add_absent(taken);
    done(taken);
  };
  ask_parts(x, all);
  ask_actors(x, all);
  ask_rows(x, all);
  all->one_less();
}

std::string pause_of(const survey& all, const std::string& kernel, const std::string& agent) {
  for (const auto& p : all.pauses)
    if (p.kernel_id == kernel && p.agent_id == agent)
      return p.reason.empty() ? "paused" : p.reason;
  return {};
}

json agent_json(const survey& all, const config::kernel& k, const config::agent& a) {
  json out{
      {"kernel_id", k.kernel_id},
      {"agent_id", a.agent_id},
      {"enabled", a.enabled},
      {"priority", a.priority},
      {"executor", std::holds_alternative<config::command_executor>(a.run) ? "command" : "script"},
      {"running", 0},
      {"limit", a.max_concurrent},
      {"waiting", 0},
      {"last_status", nullptr},
      {"last_summary", nullptr},
      {"last_error", nullptr},
      {"last_finished_at", nullptr},
      {"last_failure_class", nullptr},
      {"paused", pause_of(all, k.kernel_id, a.agent_id)}};
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

/// The helper process that starts the agents' programs: no actor, but it can die like one. It is
/// started again by the next program that is to run.
void add_process_host(const gateway_parts& p, json& rows) {
  const auto host = p.context->ports.processes->host();
  if (!host.has_host || p.context->passive)
    return;
  rows.push_back({{"name", "process_host"},
                  {"state", host.alive ? "running" : "restarting"},
                  {"restarts", host.restarts},
                  {"last_error", host.last_error},
                  {"depth", 1}});
}

/// The tree says who lives; a living part that is not well is degraded. Without a node the parts
/// are only those that answer this question: none of the node's lives.
json actors_json(const gateway_parts& p, const survey& all) {
  json rows = json::array();
  for (const auto& c : all.tree) {
    if (p.context->passive) {
      rows.push_back({{"name", c.name},
                      {"state", "stopped"},
                      {"restarts", 0},
                      {"last_error", ""},
                      {"depth", c.depth},
                      {"reason", ""}});
      continue;
    }
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
                    {"last_error", why},
                    {"depth", c.depth},
                    {"reason", c.reason}});
  }
  add_process_host(p, rows);
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
std::string problem_of(const gateway_parts& p, const survey& all, const kernel_status& k) {
  if (!k.problem.empty() || !p.context->passive)
    return k.problem;
  std::string text;
  for (const auto& c : all.unfinished)
    if (c.kernel_id == k.kernel_id)
      text += (text.empty() ? "cycle " : "; cycle ") + c.cycle_id +
              " was interrupted and waits to be resumed by boyd node or boyd cycle";
  const auto left = all.untold.find(k.kernel_id);
  if (left == all.untold.end())
    return text;
  std::string_view lead = "the latest cycle is recorded, but ";
  for (const auto& problem : left->second.problems) {
    text += (text.empty() ? "" : "; ") + std::string(lead) + problem;
    lead = {};
  }
  return text;
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
                    {"problem", problem_of(p, all, k)},
                    {"latest", latest ? to_json(*latest) : json(nullptr)}});
  }
  return rows;
}

json node_json(const gateway_parts& p) {
  const auto& c = *p.context;
  return {{"node_id", c.node_id},
          {"host", c.host},
          {"pid", c.pid},
          {"version", c.version},
          {"started_at", to_json(std::optional(c.started_at))},
          {"home", c.home},
          {"store", p.started_with->node_settings.store},
          {"config", p.configuration->path},
          {"running", !c.passive},
          {"restart_needed", waiting_for_restart(*p.started_with, *p.configuration)}};
}

json status_json(const exchange& x, const survey& all) {
  const auto& p = x.self->state.parts;
  json queue;
  for (auto s : {dispatch_status::pending, dispatch_status::running, dispatch_status::done,
                 dispatch_status::failed, dispatch_status::cancelled}) {
    auto it = all.queue.find(s);
    queue[std::string(name_of(s))] = it == all.queue.end() ? 0 : it->second;
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
  return {{"node", node_json(p)},
          {"kernels", kernels_json(p, all)},
          {"agents", std::move(agents)},
          {"actors", actors_json(p, all)},
          {"queue", std::move(queue)},
          {"permits",
           {{"limit", all.permits.limit},
            {"in_use", all.permits.in_use},
            {"peak", all.permits.peak},
            {"holders", std::move(holders)}}},
          {"health", health_json(all)},
          {"nodes", std::move(nodes)},
          {"faults", armed_faults()}};
}

json schedule_json(const exchange& x, const config::schedule& s) {
  const auto& c = *x.self->state.parts.context;
  json out{{"expression", s.expression}, {"tz", s.tz}, {"next_slot", nullptr}};
  if (auto rule = plan::schedule_rule::make(s, *c.ports.zones))
    out["next_slot"] = to_json(rule->next_after(c.ports.clock->now()));
  return out;
}

json detailed_agent(const exchange& x, const survey& all, const config::kernel& k,
                    const config::agent& a, const std::vector<store::list_decisions::row>& rows) {
  auto out = agent_json(all, k, a);
  out["timeout_ms"] = a.timeout.count();
  out["cooldown_ms"] = a.cooldown.count();
  out["schedule"] = a.when ? schedule_json(x, *a.when) : json(nullptr);
  out["last_decision"] = nullptr;
  for (const auto& row : rows) {
    if (row.decision.agent_id != a.agent_id)
      continue;
    out["last_decision"] = to_json(row.decision);
    out["last_decision"]["at"] = to_json(std::optional(row.decided_at));
    break;
  }
  return out;
}

} // namespace

void get_status(exchange_ptr x) {
  take_survey(x, [x](survey& all) { x->reply("status", status_json(*x, all)); });
}

void list_actors(exchange_ptr x, std::function<void(json rows)> then) {
  take_survey(x, [x, then = std::move(then)](survey& all) {
    then(actors_json(x->self->state.parts, all));
  });
}

void get_agents(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  take_survey(x, [x, kernel](survey& all) {
    auto seen = std::make_shared<survey>(std::move(all));
    store::list_decisions op;
    op.kernel_id = kernel->kernel_id;
    op.limit = std::max<std::size_t>(kernel->agents.size() * 2, 50);
    ask_store(x->self, x->self->state.parts.store, std::move(op),
              [x, kernel, seen](result<store::list_decisions::reply> rows) {
                if (!rows)
                  return x->fail_with(rows.error());
                json items = json::array();
                for (const auto& a : kernel->agents)
                  items.push_back(detailed_agent(*x, *seen, *kernel, a, *rows));
                x->reply("agents", {{"kernel_id", kernel->kernel_id},
                                    {"schedule", schedule_json(*x, kernel->when)},
                                    {"items", std::move(items)}});
              });
  });
}

void get_ready(exchange_ptr x) {
  take_survey(x, [x](survey& all) {
    json problems = json::array();
    for (const auto& [name, h] : all.health)
      if (!h.ok)
        problems.push_back(name + ": " + h.reason);
    const bool ok = problems.empty();
    x->reply("ready", {{"ok", ok}, {"problems", std::move(problems)}}, ok ? 200 : 503);
  });
}

} // namespace boyd::gateway_impl
