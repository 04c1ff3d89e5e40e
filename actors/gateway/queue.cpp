#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"

#include <algorithm>
#include <memory>

namespace boyd::gateway_impl {

namespace {

constexpr std::size_t standard_page = 50;
constexpr std::size_t largest_page = 1000;
/// Prompts in one page, in sum; a page that would have more ends early and says so in next_before.
constexpr std::size_t page_prompt_bytes = std::size_t{4} << 20;
/// Rows read at a time: they come with their prompts and outputs, which may be large.
constexpr std::size_t rows_at_a_time = 16;

/// An operator who was told that a run is ended must not wait for its time-out instead.
constexpr milliseconds cancel_repeat = 2s;

void reply_transition(const exchange_ptr& x, const std::string& verb, const std::string& id,
                      settle_result outcome, dispatch_status was) {
  x->reply(verb, {{"dispatch_id", id}, {"result", name_of(outcome)}, {"was", name_of(was)}});
}

/// A page that is being read.
struct page {
  store::list_dispatches next; ///< `limit`: how many items are still wanted
  json items = json::array();
  std::size_t prompt_bytes = 0;
  std::optional<utc_time> since{}; ///< created at or after it
};

using page_ptr = std::shared_ptr<page>;

void reply_page(const exchange_ptr& x, const page_ptr& p, bool more) {
  // A slip in a name looks like a quiet queue.
  if (p->items.empty() && refuse_unknown_filter(x))
    return;
  json kernels = json::array();
  for (const auto& k : x->configuration->kernels)
    kernels.push_back(k.kernel_id);
  x->reply("dispatches", {{"items", std::move(p->items)},
                          {"next_before", more ? json(p->next.before) : json(nullptr)},
                          {"kernels", std::move(kernels)}});
}

/// False when the page is full before `d`. Its first item is taken whatever its size.
bool take_row(page& p, const dispatch& d) {
  if (!p.items.empty() && p.prompt_bytes + d.prompt.size() > page_prompt_bytes)
    return false;
  p.prompt_bytes += d.prompt.size();
  p.items.push_back(to_json(d, false));
  p.items.back()["prompt"] = d.prompt;
  p.next.before = d.dispatch_id;
  --p.next.limit;
  return true;
}

void read_page(const exchange_ptr& x, const page_ptr& p) {
  auto op = p->next;
  op.limit = std::min(op.limit, rows_at_a_time);
  ask_store(x->self, x->self->state.parts.store, op,
            [x, p, asked = op.limit](result<std::vector<dispatch>> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              for (const auto& d : *rows) {
                if (p->since && d.created_at < *p->since)
                  return reply_page(x, p, false);
                if (!take_row(*p, d))
                  return reply_page(x, p, true);
              }
              if (rows->size() < asked)
                return reply_page(x, p, false);
              if (p->next.limit == 0)
                return reply_page(x, p, true);
              read_page(x, p);
            });
}

} // namespace

void list_dispatches(exchange_ptr x) {
  auto p = std::make_shared<page>();
  auto& op = p->next;
  op.kernel_id = x->query("kernel");
  op.cycle_id = x->query("cycle");
  op.agent_id = x->query("agent");
  op.before = x->query("before");
  op.with_bodies = true;
  if (const auto status = x->query("status"); !status.empty()) {
    op.status = dispatch_status_from(status);
    if (!op.status)
      return x->fail_with({errc::invalid_argument, "no such status: " + status, "status",
                           "use one of pending, running, done, failed, cancelled"});
  }
  if (const auto since = x->query("since"); !since.empty()) {
    const auto t = parse_rfc3339(since);
    if (!t)
      return x->fail_with({errc::invalid_argument, t.error().what, "since", t.error().next});
    p->since = *t;
  }
  const auto limit = x->limit(standard_page, largest_page);
  if (!limit)
    return;
  op.limit = *limit;
  read_page(x, p);
}

void show_dispatch(exchange_ptr x, const std::string& id) {
  find_dispatch(x, id, [x](const dispatch& d) {
    x->reply("dispatch", {{"dispatch", to_json(d, true)}});
  });
}

namespace {

/// Its agent is gone, and there is no other node that may still have it.
bool nobody_runs(const exchange& x, const dispatch& d) {
  const auto* kernel = x.configuration->find_kernel(d.kernel_id);
  return !x.self->state.parts.context->shared_store &&
         (kernel == nullptr || config::find_agent(*kernel, d.agent_id) == nullptr);
}

} // namespace

void retry_dispatch(exchange_ptr x, const std::string& id) {
  find_dispatch(x, id, [x](const dispatch& d) {
    if (nobody_runs(*x, d))
      return x->fail_with({errc::refused,
                           "agent " + d.kernel_id + "/" + d.agent_id +
                               " is no longer configured, so nothing would run this again",
                           d.dispatch_id, "add the agent to boyd.yaml again, then retry"});
    ask_store(x->self, x->self->state.parts.store, store::retry_dispatch{d.dispatch_id},
              [x, id = d.dispatch_id](result<store::retry_dispatch::reply> r) {
                if (!r)
                  return x->fail_with(r.error());
                if (r->result == settle_result::stale)
                  return x->fail_with({errc::conflict, "the run has not ended", id,
                                       "wait until it ends, or cancel it first"});
                reply_transition(x, "dispatch_retry", id, r->result, r->was);
              });
  });
}

void cancel_dispatch(exchange_ptr x, const std::string& id) {
  find_dispatch(x, id, [x](const dispatch& d) {
    ask_store(x->self, x->self->state.parts.store,
              store::cancel_dispatch{d.dispatch_id, "by an operator"},
              [x, id = d.dispatch_id, fence = d.fence](result<store::cancel_dispatch::reply> r) {
                if (!r)
                  return x->fail_with(r.error());
                const auto& p = x->self->state.parts;
                if (r->was != dispatch_status::running)
                  return reply_transition(x, "dispatch_cancel", id, r->result, r->was);
                if (r->lease_owner != p.context->node_id)
                  return x->fail_with({errc::conflict, "the run is on another node", id,
                                       "cancel it there: " + r->lease_owner});
                // It runs here: its dispatcher ends it and settles it as cancelled.
                // Said again, lest it was lost: of this attempt only, for another may follow.
                x->self->send(p.dispatchers, cancel_run{{}, id, cancel_cause::operator_request});
                if (fence > 0)
                  x->self->delayed_send(p.dispatchers, cancel_repeat,
                                        cancel_run{{}, id, cancel_cause::operator_request, fence});
                reply_transition(x, "dispatch_cancel", id, settle_result::accepted, r->was);
              });
  });
}

} // namespace boyd::gateway_impl
