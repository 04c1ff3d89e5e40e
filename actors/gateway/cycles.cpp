#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/plan/slots.hpp"
#include "boyd/plan/why.hpp"
#include "boyd/ports/time_zones.hpp"
#include "src/core/json_values.hpp"

#include <algorithm>

namespace boyd::gateway_impl {

namespace {

constexpr std::size_t standard_page = 20;
constexpr std::size_t largest_page = 1000;
constexpr std::size_t rows_of_a_cycle = 4096;
/// Decisions of one cycle that `why` reads: one for each agent that there was.
constexpr std::size_t why_decisions = 500;
/// Runs of one agent by hand, one after another, that an answer about another agent or about the
/// kernel looks behind.
constexpr std::size_t why_occurrences = 100;

/// What the row could not tell, because it went wrong after the row was written.
json problems_of(const cycle_record& c, const result<store::get_facts::reply>& facts) {
  // Not to know is not to be well: whoever asked would take the record for complete.
  if (!facts)
    return json::array({"cannot check whether all of it is stored: " + facts.error().what});
  return json(effects::behind_of(effects::read_effects(*facts), c.cycle_id));
}

/// The cycle with what each of its dispatches came to.
json cycle_json(const cycle_record& c, const std::vector<dispatch>& rows) {
  auto body = to_json(c);
  for (auto& a : body["agents"]) {
    const auto agent_id = a["agent_id"].get<std::string>();
    const auto d = std::ranges::find(rows, agent_id, &dispatch::agent_id);
    if (d == rows.end())
      continue;
    a["dispatch_id"] = d->dispatch_id;
    a["attempt"] = d->attempt;
    a["failure_class"] = name_of(d->outcome.failure);
    a["execution"] = name_of(d->outcome.execution);
    a["claim"] = name_of(d->outcome.claim);
    a["verification"] = name_of(d->outcome.verification);
  }
  return body;
}

/// `known`: problems that the store may not have been told.
void reply_cycle(const exchange_ptr& x, const cycle_record& c,
                 const std::vector<std::string>& known = {}) {
  store::list_dispatches op;
  op.kernel_id = c.kernel_id;
  op.cycle_id = c.cycle_id;
  op.limit = rows_of_a_cycle;
  store_request request;
  const auto dispatches = request.add(std::move(op));
  const auto behind = request.add(
      store::get_facts{effects::scope_of(c.kernel_id, x->self->state.parts.context->node_id)});
  ask<store_reply>(x->self, x->self->state.parts.store, std::move(request),
                   [x, c, known, dispatches, behind](result<store_reply> r) {
                     const auto rows = dispatches.of(r);
                     auto body = cycle_json(c, rows ? *rows : std::vector<dispatch>{});
                     auto problems = problems_of(c, behind.of(r));
                     for (const auto& each : known)
                       if (std::ranges::find(problems, json(each)) == problems.end())
                         problems.push_back(each);
                     body["problems"] = std::move(problems);
                     x->reply("cycle", std::move(body));
                   });
}

void find_cycle(const exchange_ptr& x, const std::string& kernel, const std::string& id) {
  store::list_cycles op;
  op.kernel_id = kernel;
  op.include_running = true;
  op.cycle_id = id;
  op.limit = 1;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, id](result<std::vector<cycle_record>> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              for (const auto& c : *rows)
                if (c.cycle_id == id)
                  return reply_cycle(x, c);
              x->fail_with({errc::not_found, "no such cycle: " + id, {}, "see: boyd state log"});
            });
}

/// Kernel and agent of a pause, checked against the configuration.
std::optional<pause_record> target_of(const exchange_ptr& x) {
  // Else a paused agent would end its own pause, or one agent stop the others.
  if (x->request.caller && !may_decide(*x)) {
    x->fail_with(not_a_person(*x, x->request.path));
    return std::nullopt;
  }
  auto body = x->body();
  if (!body)
    return std::nullopt;
  const auto* kernel = x->kernel(text_in(*body, "kernel"));
  if (kernel == nullptr)
    return std::nullopt;
  pause_record p;
  p.kernel_id = kernel->kernel_id;
  p.agent_id = text_in(*body, "agent");
  p.reason = text_in(*body, "reason");
  if (!p.agent_id.empty() && config::find_agent(*kernel, p.agent_id) == nullptr) {
    refuse_agent(x, kernel->kernel_id, p.agent_id);
    return std::nullopt;
  }
  return p;
}

using why_ptr = std::shared_ptr<plan::why_input>;

void reply_why(const exchange_ptr& x, const why_ptr& in) {
  auto body = json::parse(plan::explain_why(*in).json, nullptr, false);
  body["kernels"] = json::array();
  for (const auto& k : x->configuration->kernels)
    body["kernels"].push_back(k.kernel_id);
  x->reply("why", std::move(body));
}

/// How the runs ended that were decided on. Without them the rest is told all the same.
void read_why_runs(const exchange_ptr& x, const why_ptr& in) {
  store_request request;
  std::vector<store_ticket<store::list_dispatches>> asked;
  const auto add = [&](const std::string& cycle_id) {
    store::list_dispatches op;
    op.kernel_id = in->kernel_id;
    op.agent_id = in->agent_id;
    op.cycle_id = cycle_id;
    op.limit = why_decisions;
    asked.push_back(request.add(std::move(op)));
  };
  std::vector<std::string> cycles;
  for (const auto& row : in->decisions)
    if (std::ranges::find(cycles, row.cycle_id) == cycles.end())
      cycles.push_back(row.cycle_id);
  for (const auto& cycle_id : cycles)
    add(cycle_id);
  if (in->by_hand)
    add(in->by_hand->cycle_id);
  if (asked.empty())
    return reply_why(x, in);
  ask<store_reply>(x->self, x->self->state.parts.store, std::move(request),
                   [x, in, asked](result<store_reply> r) {
                     if (!r)
                       return reply_why(x, in);
                     for (const auto& one : asked)
                       if (auto rows = one.of(*r))
                         in->runs.insert(in->runs.end(), rows->begin(), rows->end());
                     reply_why(x, in);
                   });
}

/// The newest cycle was a run of one agent of several: it tells nothing of the kernel.
bool is_run_by_hand(const exchange& x, const plan::why_input& in,
                    const store::list_decisions::reply& rows) {
  const auto* kernel = x.configuration->find_kernel(in.kernel_id);
  return !in.at && in.agent_id.empty() && rows.size() == 1 && in.occurrences.size() > 1 &&
         in.occurrences.front().trigger != plan::schedule_trigger && kernel != nullptr &&
         kernel->agents.size() > 1;
}

/// About an agent of which nothing was decided: whether that cycle decided about one agent, or
/// about all that there were.
void read_why_others(const exchange_ptr& x, const why_ptr& in) {
  store::list_decisions op;
  op.kernel_id = in->kernel_id;
  op.cycle_id = in->occurrences.empty() ? "" : in->occurrences.front().cycle_id;
  op.limit = 2;
  if (op.cycle_id.empty())
    return reply_why(x, in);
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, in](result<store::list_decisions::reply> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              in->decisions = std::move(*rows);
              reply_why(x, in);
            });
}

/// About the kernel at a time: all that the cycle decided which answers.
void read_why_slot(const exchange_ptr& x, const why_ptr& in) {
  const auto* slot = plan::cycles_asked_about(*in).slot;
  if (slot == nullptr || slot->cycle_id.empty() || !in->agent_id.empty())
    return read_why_runs(x, in);
  store::list_decisions op;
  op.kernel_id = in->kernel_id;
  op.cycle_id = slot->cycle_id;
  op.limit = why_decisions;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, in, id = slot->cycle_id](result<store::list_decisions::reply> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              std::erase_if(in->decisions, [&](const auto& row) { return row.cycle_id == id; });
              in->decisions.insert(in->decisions.end(), rows->begin(), rows->end());
              read_why_runs(x, in);
            });
}

/// Of a question about a time: what the cycles down to the schedule's newest decided, of each the
/// decision about the agent and so many that it is known whether it was about one agent alone.
void read_why_moment(const exchange_ptr& x, const why_ptr& in) {
  store_request request;
  std::vector<store_ticket<store::list_decisions>> asked;
  const auto add = [&](const std::string& cycle_id, const std::string& agent_id) {
    store::list_decisions op;
    op.kernel_id = in->kernel_id;
    op.agent_id = agent_id;
    op.cycle_id = cycle_id;
    op.limit = agent_id.empty() ? 2 : 1;
    asked.push_back(request.add(std::move(op)));
  };
  for (const auto& row : in->occurrences) { // the newest first
    if (!row.cycle_id.empty()) {
      add(row.cycle_id, "");
      if (!in->agent_id.empty())
        add(row.cycle_id, in->agent_id);
    }
    if (row.trigger == plan::schedule_trigger)
      break;
  }
  if (asked.empty())
    return reply_why(x, in);
  ask<store_reply>(x->self, x->self->state.parts.store, std::move(request),
                   [x, in, asked](result<store_reply> r) {
                     if (!r)
                       return x->fail_with(r.error());
                     const auto is_known = [&](const store::list_decisions::row& row) {
                       return std::ranges::any_of(in->decisions, [&](const auto& known) {
                         return known.cycle_id == row.cycle_id &&
                                known.decision.agent_id == row.decision.agent_id;
                       });
                     };
                     for (const auto& one : asked) {
                       const auto rows = one.of(*r);
                       if (!rows)
                         return x->fail_with(rows.error());
                       for (const auto& row : *rows)
                         if (!is_known(row))
                           in->decisions.push_back(row);
                     }
                     read_why_slot(x, in);
                   });
}

/// The decisions that explain_why looks at: those of the slot's cycle; of an agent, when no time is
/// given, its newest.
void read_why_decisions(const exchange_ptr& x, const why_ptr& in) {
  store::list_decisions op;
  op.kernel_id = in->kernel_id;
  op.agent_id = in->agent_id;
  op.limit = why_decisions;
  if (in->agent_id.empty()) {
    op.cycle_id = in->occurrences.empty() ? "" : in->occurrences.front().cycle_id;
    if (op.cycle_id.empty())
      return read_why_runs(x, in);
  } else {
    op.limit = 1;
  }
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, in](result<store::list_decisions::reply> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              if (is_run_by_hand(*x, *in, *rows)) {
                if (!in->by_hand)
                  in->by_hand = rows->front();
                in->occurrences.erase(in->occurrences.begin());
                return read_why_decisions(x, in);
              }
              if (rows->empty() && !in->agent_id.empty())
                return read_why_others(x, in);
              in->decisions = std::move(*rows);
              read_why_runs(x, in);
            });
}

/// The slot in question first: its decisions may be far behind the newest.
void read_why(const exchange_ptr& x, const why_ptr& in) {
  store_request request;
  const bool passes_others = in->at || in->agent_id.empty();
  const auto slot = request.add(store::list_occurrences{in->kernel_id, in->at.value_or(in->now),
                                                        passes_others ? why_occurrences : 1});
  const auto pauses = request.add(store::list_pauses{in->kernel_id});
  ask<store_reply>(x->self, x->self->state.parts.store, std::move(request),
                   [x, in, slot, pauses](result<store_reply> r) {
                     if (!r)
                       return x->fail_with(r.error());
                     if (auto rows = slot.of(*r))
                       in->occurrences = std::move(*rows);
                     if (auto rows = pauses.of(*r))
                       in->pauses = std::move(*rows);
                     if (in->at)
                       return read_why_moment(x, in);
                     read_why_decisions(x, in);
                   });
}

/// About an agent that is not configured: it may have been, and then there are decisions about it.
void read_why_removed(const exchange_ptr& x, const why_ptr& in) {
  store::list_decisions newest;
  newest.kernel_id = in->kernel_id;
  newest.agent_id = in->agent_id;
  newest.limit = 1;
  ask_store(x->self, x->self->state.parts.store, std::move(newest),
            [x, in](const result<store::list_decisions::reply>& rows) {
              if (!rows)
                return x->fail_with(rows.error());
              if (rows->empty())
                return refuse_agent(x, in->kernel_id, in->agent_id);
              in->last_decided = rows->front().decided_at;
              read_why(x, in);
            });
}

} // namespace

void list_cycles(exchange_ptr x) {
  const auto* kernel = x->kernel();
  const auto limit = kernel == nullptr ? std::nullopt : x->limit(standard_page, largest_page);
  if (!limit)
    return;
  store::list_cycles op;
  op.kernel_id = kernel->kernel_id;
  op.include_running = true;
  op.limit = *limit;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x](result<std::vector<cycle_record>> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              json items = json::array();
              for (const auto& c : *rows)
                items.push_back(to_json(c));
              x->reply("cycles", {{"items", std::move(items)}});
            });
}

void show_cycle(exchange_ptr x, const std::string& id) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const auto wait = x->query("wait");
  if (!wait.empty() && wait != "0" && wait != "1")
    return x->fail_with({errc::invalid_argument, "wait must be 0 or 1", "wait=" + wait, {}});
  if (wait != "1")
    return find_cycle(x, kernel->kernel_id, id);
  ask<awaited_cycle>(
      x->self, x->self->state.parts.kernels.at(kernel->kernel_id), await_cycle{{}, id},
      [x](result<awaited_cycle> r) {
        if (!r)
          return x->fail_with(r.error());
        if (!r->rows)
          return reply_cycle(x, r->record, r->problems);
        auto body = cycle_json(r->record, *r->rows);
        body["problems"] = json::array();
        x->reply("cycle", std::move(body));
      },
      kernel->cycle_deadline + 1h);
}

namespace {

void reply_trigger(const exchange_ptr& x, const trigger_reply& r) {
  x->reply("cycle_trigger",
           {{"admitted", r.admitted}, {"cycle_id", r.cycle_id}, {"reason", r.reason}},
           r.admitted ? 202 : 409);
}

/// The kernel went away with its answer. When it had written the trigger to the ledger already,
/// the cycle comes all the same: whoever asks again would have a second one.
void find_triggered(const exchange_ptr& x, const std::string& kernel_id, const std::string& source,
                    utc_time asked_at, const error& why) {
  ask_store(x->self, x->self->state.parts.store,
            store::list_occurrences{kernel_id, {}, standard_page},
            [x, source, asked_at, why](result<std::vector<occurrence>> rows) {
              const auto& node = x->self->state.parts.context->node_id;
              const auto is_it = [&](const occurrence& o) {
                return o.trigger == source && o.node_id == node && o.created_at >= asked_at &&
                       o.state == occurrence_state::open && !o.cycle_id.empty();
              };
              if (rows)
                if (auto it = std::ranges::find_if(*rows, is_it); it != rows->end())
                  return reply_trigger(x, trigger_reply{{}, true, it->cycle_id, {}});
              x->fail_with(why);
            });
}

/// Asks the kernel for a cycle, and answers with what it says.
void ask_for_cycle(const exchange_ptr& x, const config::kernel& kernel, trigger_cycle what) {
  // A command that only asks would end before the cycle, and leave its slot to nobody.
  if (x->self->state.parts.context->passive)
    return x->fail_with({errc::refused, "no node is running on this home, so no cycle was queued",
                         kernel.kernel_id,
                         "start the node (boyd node), or run one cycle now: boyd cycle"});
  const auto asked_at = x->self->state.parts.context->ports.clock->now();
  const auto source = what.trigger;
  ask<trigger_reply>(x->self, x->self->state.parts.kernels.at(kernel.kernel_id), std::move(what),
                     [x, source, asked_at, id = kernel.kernel_id](result<trigger_reply> r) {
                       if (r)
                         return reply_trigger(x, *r);
                       find_triggered(x, id, source, asked_at, r.error());
                     });
}

} // namespace

void trigger(exchange_ptr x) {
  auto body = x->body();
  if (!body)
    return;
  const auto* kernel = x->kernel(text_in(*body, "kernel"));
  if (kernel == nullptr)
    return;
  const auto named = text_in(*body, "trigger");
  const auto source = named.empty() ? std::string("api") : named;
  if (source != "manual" && source != "api")
    return x->fail_with(
        {errc::invalid_argument, "no such trigger: " + source, "body", "manual or api"});
  ask_for_cycle(x, *kernel, {{}, source});
}

void run_agent(exchange_ptr x, const std::string& id) {
  auto body = x->body();
  if (!body)
    return;
  const auto* kernel = x->kernel(text_in(*body, "kernel"));
  if (kernel == nullptr)
    return;
  if (config::find_agent(*kernel, id) == nullptr)
    return refuse_agent(x, kernel->kernel_id, id);
  const auto message = text_in(*body, "message");
  if (message.size() > limits::prompt_bytes)
    return x->fail_with(
        {errc::limit_exceeded,
         "the message is longer than " + std::to_string(limits::prompt_bytes) + " bytes", "body",
         "put the text into a file that the agent reads"});
  ask_for_cycle(x, *kernel, {{}, "manual", plan::single_run{id, message}});
}

void pause(exchange_ptr x) {
  auto p = target_of(x);
  if (!p)
    return;
  ask_store(
      x->self, x->self->state.parts.store, store::set_pause{*p}, [x, p = *p](result<store::ok> r) {
        if (!r)
          return x->fail_with(r.error());
        x->reply("pause",
                 {{"kernel_id", p.kernel_id}, {"agent_id", p.agent_id}, {"reason", p.reason}});
      });
}

void resume(exchange_ptr x) {
  auto p = target_of(x);
  if (!p)
    return;
  ask_store(x->self, x->self->state.parts.store, store::clear_pause{p->kernel_id, p->agent_id},
            [x, p = *p](result<store::clear_pause::reply> r) {
              if (!r)
                return x->fail_with(r.error());
              x->reply(
                  "resume",
                  {{"kernel_id", p.kernel_id}, {"agent_id", p.agent_id}, {"cleared", r->cleared}});
            });
}

void get_why(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const auto& context = *x->self->state.parts.context;
  auto in = std::make_shared<plan::why_input>();
  in->kernel_id = kernel->kernel_id;
  in->several_kernels = x->configuration->kernels.size() > 1;
  in->agent_id = x->query("agent");
  in->now = context.ports.clock->now();
  const auto* agent = in->agent_id.empty() ? nullptr : config::find_agent(*kernel, in->agent_id);
  in->enabled = agent == nullptr || agent->enabled;
  in->own_schedule = agent != nullptr && agent->when.has_value();
  if (const auto at = x->query("at"); !at.empty()) {
    auto t = plan::end_of_moment(at);
    if (!t)
      return x->fail_with({errc::invalid_argument, t.error().what, "at", t.error().next});
    in->at = *t;
  }
  if (auto rule = plan::schedule_rule::make(kernel->when, *context.ports.zones)) {
    in->next_slot = rule->next_after(in->now);
    // A minute that is asked about may have begun and not be over.
    const auto until = std::min(in->at.value_or(in->now), in->now);
    in->expected_slot = rule->latest_at_or_before(until);
    if (in->own_schedule)
      if (auto own = plan::schedule_rule::make(*agent->when, *context.ports.zones)) {
        in->next_agent_slot = own->next_after(in->now);
        in->agent_schedule = agent->when->expression;
        in->agent_due = own->latest_at_or_before(until);
      }
    if (in->next_agent_slot)
      in->next_agent_cycle = rule->next_after(*in->next_agent_slot - milliseconds{1});
  }
  in->schedule = kernel->when.expression;
  in->node_since = time_of_uuid_v7(context.node_id);
  in->node_runs = !context.passive;
  if (auto quiet = plan::make_quiet_rules(kernel->quiet, *context.ports.zones))
    in->quiet = plan::is_quiet(*quiet, in->now);
  if (!in->agent_id.empty() && agent == nullptr)
    return read_why_removed(x, in);
  read_why(x, in);
}

} // namespace boyd::gateway_impl
