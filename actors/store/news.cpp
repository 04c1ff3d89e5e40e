#include "actors/store/news.hpp"

#include "boyd/core/final_refusal.hpp"
#include "boyd/queue/due_work.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace boyd {

namespace {

queued_work work_of(const dispatch_spec& spec) {
  return {spec.kernel_id, spec.agent_id, spec.priority, 1};
}

bool is_delayed(const dispatch_spec& spec) {
  return spec.delay.count() > 0;
}

} // namespace

std::vector<queued_work> work_of(const store_request& request) {
  std::size_t rows = 0;
  std::vector<queued_work> all;
  for (const auto& op : request.operations) {
    const auto* e = std::get_if<store::enqueue_cycle>(&op);
    if (e == nullptr)
      continue;
    rows += e->specs.size();
    if (rows > queue::most_told || std::ranges::any_of(e->specs, is_delayed))
      return {};
    for (const auto& spec : e->specs)
      queue::add_due(all, work_of(spec));
  }
  return all;
}

void small_cycles::note(const store_request& request) {
  constexpr std::size_t most_remembered = 64;
  for (const auto& op : request.operations) {
    const auto* e = std::get_if<store::enqueue_cycle>(&op);
    if (e == nullptr || e->decisions.empty() || e->specs.empty() ||
        e->specs.size() > queue::most_told)
      continue;
    newest_.push_back({e->cycle_id, e->kernel_id});
    if (newest_.size() > most_remembered)
      newest_.pop_front();
  }
}

void small_cycles::ask_behind(store_request& request) const {
  const auto* settled = request.operations.empty()
                            ? nullptr
                            : std::get_if<store::settle>(&request.operations.front());
  if (settled == nullptr || settled->items.size() != 1)
    return;
  const auto found = std::ranges::find(newest_, settled->items.front().cycle_id, &cycle::cycle_id);
  if (found == newest_.end())
    return;
  store::list_dispatches rows;
  rows.kernel_id = found->kernel_id;
  rows.cycle_id = found->cycle_id;
  rows.limit = queue::most_told + 1;
  request.operations.emplace_back(std::move(rows));
}

void queue_news::collect(const store::enqueue_cycle& op, const store::any_reply& any,
                         std::uint64_t with) {
  const auto* reply = std::get_if<store::enqueue_cycle::reply>(&any);
  if (reply == nullptr || work_)
    return;
  work_ = queued_.size() + op.specs.size() > queue::most_told ||
          reply->inserted < op.specs.size() || std::ranges::any_of(op.specs, is_delayed);
  if (work_)
    return;
  for (const auto& spec : op.specs)
    queued_.push_back({work_of(spec), with});
}

/// A claim with a number stands behind what it was told of, and its dispatcher has counted that.
void queue_news::collect(const store::claim& op, const store::any_reply& any, std::uint64_t with) {
  if (with == 0 || !std::holds_alternative<store::claim::reply>(any))
    return;
  std::erase_if(queued_, [&](const told_work& w) {
    return w.coming == with && w.what.agent_id == op.agent_id && w.what.kernel_id == op.kernel_id;
  });
}

void queue_news::collect(const store::settle& op, const store::any_reply& any) {
  const auto* results = std::get_if<std::vector<settle_result>>(&any);
  for (std::size_t i = 0; results != nullptr && i < results->size(); ++i) {
    if ((*results)[i] != settle_result::accepted)
      continue;
    settled_.push_back(op.items[i].dispatch_id);
    rows_.erase(op.items[i].cycle_id);
    work_ = work_ || op.items[i].to == settle_to::release || op.items[i].to == settle_to::retry;
  }
}

/// The newest answer is the one behind all settlements. A list that is full may have left rows out.
void queue_news::collect(const store::list_dispatches& op, const store::any_reply& any) {
  const auto* rows = std::get_if<store::list_dispatches::reply>(&any);
  if (rows != nullptr && !op.cycle_id.empty() && rows->size() < op.limit)
    rows_[op.cycle_id] = *rows;
}

/// Only what was cancelled: a kernel that waits for a row which runs on would be told without end.
void queue_news::collect(const store::cancel_dispatch& op, const store::any_reply& any) {
  const auto* cancelled = std::get_if<store::cancel_dispatch::reply>(&any);
  if (cancelled == nullptr || cancelled->result != settle_result::accepted)
    return;
  settled_.push_back(op.dispatch_id);
  rows_.clear(); // of whichever cycle it was
}

void queue_news::collect(const job<store_request, store_reply>& j) {
  if (!j.reply) {
    for (const auto& op : j.request.operations)
      if (const auto* c = std::get_if<store::claim>(&op); c && is_final_refusal(j.reply.error()))
        refused_.push_back({c->kernel_id, c->agent_id, j.reply.error()});
    return;
  }
  const bool settles = std::holds_alternative<store::settle>(j.request.operations.front());
  for (std::size_t i = 0; i < j.request.operations.size() && i < j.reply->values.size(); ++i) {
    const auto& op = j.request.operations[i];
    const auto& value = j.reply->values[i];
    if (const auto* s = std::get_if<store::settle>(&op))
      collect(*s, value);
    else if (const auto* c = std::get_if<store::cancel_dispatch>(&op))
      collect(*c, value);
    else if (const auto* list = std::get_if<store::list_dispatches>(&op); list && settles)
      collect(*list, value);
    else if (const auto* e = std::get_if<store::enqueue_cycle>(&op))
      collect(*e, value, j.request.with);
    else if (const auto* taken = std::get_if<store::claim>(&op))
      collect(*taken, value, j.request.with);
    else if (const auto* rescued = std::get_if<store::rescue_expired::reply>(&value))
      // Each node looks, and most find nothing; but what was asked for twice was found before.
      work_ = work_ || !rescued->returned.empty() || j.reply->repeated;
    else if (std::holds_alternative<store::retry_dispatch>(op) ||
             std::holds_alternative<store::take_back>(op))
      work_ = true;
  }
}

std::vector<queued_work> queue_news::queued() const {
  std::vector<queued_work> all;
  for (const auto& w : queued_)
    if (!work_)
      queue::add_due(all, w.what);
  return all;
}

} // namespace boyd
