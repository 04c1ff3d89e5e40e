#include "actors/gateway/survey.hpp"

#include "actors/support/ask.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace boyd::gateway_impl {

namespace {

/// A part that does not answer within this is shown as it is: silent.
constexpr milliseconds part_limit = 2s;
/// Surveys under way at once.
constexpr std::size_t most_surveys = 2;

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

/// Of a part that the node does without for a while: what a person should know, where there is
/// something.
template <class Handle>
void ask_notice(const exchange_ptr& x, const survey_ptr& all, const std::string& name,
                const Handle& part) {
  ++all->missing;
  ask<part_health>(
      x->self, part, health_query{},
      [all, name](const result<part_health>& r) {
        if (r && !r->notice.empty())
          all->health[name].notice = r->notice;
        all->one_less();
      },
      part_limit);
}

/// A command has committed nothing from which the committer would know how the repositories are:
/// it is made to look at each of them first.
void ask_committer(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  const auto& kernels = p.configuration->kernels;
  if (!p.context->passive || kernels.empty())
    return ask_health(x, all, "git_committer", p.git_committer);
  const auto left = std::make_shared<std::size_t>(kernels.size());
  ++all->missing;
  for (const auto& k : kernels)
    ask<repository_reply>(
        x->self, p.git_committer, repository_request{{}, query_history{k.kernel_id, {}, 1}},
        [x, all, left](const result<repository_reply>&) {
          if (--*left > 0)
            return;
          ask_health(x, all, "git_committer", x->self->state.parts.git_committer);
          all->one_less();
        },
        part_limit);
}

/// The health of a keeper that a command's first question wakes: without a node it is asked that
/// one first, for what it is concerned about is known only then.
template <class Reply, class Handle, class Question>
void ask_woken(const exchange_ptr& x, const survey_ptr& all, const std::string& name,
               const Handle& part, Question question) {
  if (!x->self->state.parts.context->passive)
    return ask_health(x, all, name, part);
  ++all->missing;
  ask<Reply>(
      x->self, part, std::move(question),
      [x, all, name, part](const result<Reply>&) {
        ask_health(x, all, name, part);
        all->one_less();
      },
      part_limit);
}

void ask_parts(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  store_request nodes;
  nodes.add(store::list_nodes{});
  ask_woken<store_reply>(x, all, "store", p.store, std::move(nodes));
  ask_health(x, all, "permits", p.permits);
  ask_health(x, all, "governor", p.governor);
  ask_health(x, all, "approvals", p.approvals);
  ask_health(x, all, "workspace", p.workspace);
  ask_health(x, all, "mcp", p.mcp);
  ask_health(x, all, "state_writer", p.state_writer);
  ask_committer(x, all);
  ask_woken<graph_reply>(x, all, "graph_recorder", p.graph_recorder, graph_request{});
  ask_health(x, all, "dispatchers", p.dispatchers);
  ask_health(x, all, "librarian", p.librarian);
  ask_health(x, all, "planner", p.planner);
  ask_notice(x, all, "knowledge", p.knowledge);
  for (const auto& [id, k] : p.kernels)
    ask_health(x, all, "kernel:" + id, k);
}

void ask_actors(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  all->missing += 5;
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
  ask<governors_reply>(
      x->self, p.governor, governors_query{},
      [all](result<governors_reply> r) {
        if (r)
          all->providers = std::move(r->providers);
        all->one_less();
      },
      part_limit);
  ask<approvals_status>(
      x->self, p.approvals, approvals_query{},
      [all](result<approvals_status> r) {
        if (r)
          all->approvals = std::move(*r);
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

/// Agents and nodes of which today's spending is read.
constexpr std::size_t most_scopes = 20'000;
/// Open reservations that are counted.
constexpr std::size_t most_open_calls = 1000;
/// Open requests for approvals that are counted.
constexpr std::size_t most_approvals = 1000;
/// Interrupted cycles are the newest ones; few can be under way at once.
constexpr std::size_t cycles_searched = 16;

/// What the store is asked about one kernel.
struct kernel_questions {
  std::string kernel_id;
  store_ticket<store::latest_per_agent> latest;
  store_ticket<store::list_cycles> newest, under_way;
  store_ticket<store::get_facts> effects;
};

kernel_questions ask_about(store_request& request, const std::string& kernel,
                           const std::string& node) {
  store::list_cycles newest;
  newest.kernel_id = kernel;
  newest.limit = 1;
  auto under_way = newest;
  under_way.include_running = true;
  under_way.limit = cycles_searched;
  return {kernel, request.add(store::latest_per_agent{kernel}), request.add(std::move(newest)),
          request.add(std::move(under_way)),
          request.add(store::get_facts{effects::scope_of(kernel, node)})};
}

void take_rows(survey& all, const kernel_questions& asked, const std::string& node,
               store_reply& r) {
  if (auto rows = asked.latest.of(r))
    std::ranges::move(*rows, std::back_inserter(all.latest));
  else
    all.store_problem = to_string(rows.error());
  if (auto rows = asked.newest.of(r); rows && !rows->empty())
    all.cycles.emplace(asked.kernel_id, std::move(rows->front()));
  if (const auto facts = asked.effects.of(r))
    all.effects[asked.kernel_id] = effects::read_effects(*facts);
  if (const auto rows = asked.under_way.of(r))
    std::ranges::copy_if(*rows, std::back_inserter(all.unfinished), [&](const auto& c) {
      return c.status == cycle_status::running && c.node_id == node;
    });
}

/// What the store is asked about all of them.
struct common_questions {
  store_ticket<store::count_by_status> queue;
  store_ticket<store::list_pauses> pauses;
  store_ticket<store::list_nodes> nodes;
  store_ticket<store::get_facts> restarts;
  store_ticket<store::sum_spend> spent;
  store_ticket<store::list_approvals> approvals;
  store_ticket<store::list_spend> reservations;
};

common_questions ask_about_all(store_request& request, const std::string& node) {
  store::sum_spend spent;
  spent.by = store::sum_spend::group::scope;
  spent.limit = most_scopes;
  store::list_approvals open;
  open.open = true;
  open.limit = most_approvals;
  store::list_spend reserved;
  reserved.open_only = true;
  reserved.limit = most_open_calls;
  return {request.add(store::count_by_status{}),
          request.add(store::list_pauses{}),
          request.add(store::list_nodes{}),
          request.add(store::get_facts{state::restarts_scope(node)}),
          request.add(std::move(spent)),
          request.add(std::move(open)),
          request.add(std::move(reserved))};
}

void take_rows(survey& all, const common_questions& asked, store_reply& r) {
  if (auto q = asked.queue.of(r))
    all.queue = std::move(*q);
  else
    all.store_problem = to_string(q.error());
  if (auto q = asked.pauses.of(r))
    all.pauses = std::move(*q);
  if (auto q = asked.nodes.of(r))
    all.nodes = std::move(*q);
  if (const auto q = asked.restarts.of(r))
    all.restarts = state::parse_restarts(*q);
  if (auto q = asked.spent.of(r))
    for (auto& row : *q)
      all.spent.emplace(std::move(row.key), row.used);
  else
    all.store_problem = to_string(q.error());
  if (auto q = asked.approvals.of(r))
    all.open_approvals = std::move(*q);
  if (auto q = asked.reservations.of(r))
    all.reservations = std::move(*q);
}

void ask_rows(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  const auto& node = p.context->node_id;
  store_request request;
  const auto common = ask_about_all(request, node);
  std::vector<kernel_questions> kernels;
  for (const auto& k : p.configuration->kernels)
    kernels.push_back(ask_about(request, k.kernel_id, node));
  ++all->missing;
  ask<store_reply>(
      x->self, p.store, std::move(request),
      [all, node, common, kernels = std::move(kernels)](result<store_reply> r) {
        if (!r) {
          all->store_problem = to_string(r.error());
          return all->one_less();
        }
        take_rows(*all, common, *r);
        for (const auto& asked : kernels)
          take_rows(*all, asked, node, *r);
        all->one_less();
      },
      part_limit * 2);
}

/// A failure to ask; it says nothing of the file.
bool is_silence(const error& e) {
  return e.code == errc::actor_down || e.code == errc::timed_out || e.code == errc::overloaded;
}

/// Of several findings, one in each line behind the first, a line of its own has room for one.
std::string first_finding(const std::string& what) {
  const auto lines = split(what, '\n');
  if (lines.size() < 2)
    return what;
  const auto more = lines.size() - 2;
  return std::string(trim(lines[1])) +
         (more == 0 ? "" : " (and " + std::to_string(more) + " more: boyd config validate)");
}

/// Whether the next start, or a reload, would take the file as it is now.
void ask_configuration(const exchange_ptr& x, const survey_ptr& all) {
  const auto& p = x->self->state.parts;
  if (!p.context->parse_configuration)
    return;
  ++all->missing;
  ask<workspace_reply>(
      x->self, p.workspace, workspace_request{{}, read_configuration{p.configuration->path}},
      [all](const result<workspace_reply>& r) {
        if (r) {
          if (!r->configuration)
            all->configuration_problem = first_finding(r->configuration.error().what);
        } else if (!is_silence(r.error())) {
          all->configuration_problem = to_string(r.error());
        }
        all->one_less();
      },
      part_limit);
}

/// The store's health was asked beside its rows: what it could not answer just now is newer.
void add_store_problem(survey& all) {
  if (all.store_problem.empty())
    return;
  auto& h = all.health["store"];
  if (h.ok || h.reason.empty())
    h.reason = all.store_problem;
  h.ok = false;
  if (h.last_error.empty())
    h.last_error = h.reason;
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

/// Work that cannot begin is tried again for ever; somebody should know.
void add_shortages(survey& all) {
  for (const auto& d : all.dispatchers) {
    if (d.shortage.empty())
      continue;
    auto& h = all.health["dispatcher:" + d.kernel_id + "/" + d.agent_id];
    h.ok = false;
    h.reason = h.last_error = "its work cannot begin: " + d.shortage;
  }
}

/// Programs of agents can only be started through it.
void add_process_host(const gateway_parts& p, survey& all) {
  const auto host = p.context->ports.processes->host();
  if (!host.has_host || host.problem.empty())
    return;
  auto& h = all.health["process_host"];
  h.ok = false;
  h.reason = h.last_error = host.problem;
}

} // namespace

bool survey::draining() const {
  return !tree.empty() && tree.front().state == "stopping";
}

std::string survey::running_attempts() const {
  std::size_t count = 0;
  for (const auto& d : dispatchers)
    count += static_cast<std::size_t>(d.running);
  return std::to_string(count) + (count == 1 ? " running attempt" : " running attempts");
}

namespace {

void begin_survey(const exchange_ptr& x, std::vector<std::pair<exchange_ptr, survey_reader>> who);

void end_survey(self_pointer self) {
  auto& state = self->state;
  --state.surveys;
  auto next = std::exchange(state.want_survey, {});
  std::erase_if(next, [](const auto& one) {
    if (one.first->left())
      one.first->reply_as({});
    return one.first->answered;
  });
  if (next.empty())
    return;
  const auto first = next.front().first;
  begin_survey(first, std::move(next));
}

void begin_survey(const exchange_ptr& x, std::vector<std::pair<exchange_ptr, survey_reader>> who) {
  ++x->self->state.surveys;
  auto all = std::make_shared<survey>();
  all->done = [x, who = std::move(who)](survey& taken) {
    add_shortages(taken);
    add_absent(taken);
    add_process_host(x->self->state.parts, taken);
    add_store_problem(taken);
    for (const auto& [reader, tell] : who) {
      if (reader->left())
        reader->reply_as({});
      else
        tell(taken);
    }
    end_survey(x->self);
  };
  ask_parts(x, all);
  ask_actors(x, all);
  ask_rows(x, all);
  ask_configuration(x, all);
  all->one_less();
}

} // namespace

void take_survey(const exchange_ptr& x, survey_reader done) {
  auto& state = x->self->state;
  if (state.surveys < most_surveys)
    return begin_survey(x, {{x, std::move(done)}});
  state.want_survey.emplace_back(x, std::move(done));
}

std::vector<std::string> problems_of(const gateway_parts& p, const survey& all) {
  std::vector<std::string> lines;
  if (all.draining() && !p.context->passive)
    lines.push_back("Stopping: waiting up to " +
                    format_duration(p.configuration->node_settings.drain_grace) + " for " +
                    all.running_attempts());
  if (!all.store_problem.empty())
    lines.push_back("queue and last runs are unknown, because the database does not answer: " +
                    all.store_problem);
  if (!all.configuration_problem.empty())
    lines.push_back("boyd.yaml has errors; the node keeps the previous configuration, and the next "
                    "start would fail: " +
                    all.configuration_problem);
  for (const auto& provider : all.providers)
    if (provider.breaker == model::breaker_state::open)
      lines.push_back("provider " + provider.provider_id +
                      " keeps failing and is suspended for a while: " + provider.last_trouble);
  std::ranges::move(approval_problems(all), std::back_inserter(lines));
  std::ranges::move(budget_problems(p, all), std::back_inserter(lines));
  return lines;
}

} // namespace boyd::gateway_impl
