#include "actors/store/news.hpp"

#include "actors/store/replies.hpp"
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

/// Whether rows may be waiting again. Each node looks for expired leases, and most find none; but
/// what was asked for twice may have found them the first time.
bool means_work(const store::operation& op, const store::any_reply& value, bool repeated) {
  if (const auto* rescued = std::get_if<store::rescue_expired::reply>(&value))
    return !rescued->returned.empty() || repeated;
  return std::holds_alternative<store::retry_dispatch>(op) ||
         std::holds_alternative<store::take_back>(op);
}

} // namespace

void queue_news::collect(const store::enqueue_cycle& op, const store::any_reply& any) {
  const auto* reply = std::get_if<store::enqueue_cycle::reply>(&any);
  if (reply == nullptr || work_)
    return;
  rows_ += op.specs.size();
  if (rows_ > queue::most_told || reply->inserted < op.specs.size() ||
      std::ranges::any_of(op.specs, is_delayed))
    return has_more_work();
  for (const auto& spec : op.specs)
    queue::add_due(queued_, work_of(spec));
}

void queue_news::has_more_work() {
  work_ = true;
  queued_.clear();
}

void queue_news::collect(const store::settle& op, const store::any_reply& any) {
  const auto* results = std::get_if<std::vector<settle_result>>(&any);
  for (std::size_t i = 0; results != nullptr && i < results->size(); ++i) {
    if ((*results)[i] != settle_result::accepted)
      continue;
    settled_.push_back(op.items[i].dispatch_id);
    if (op.items[i].to == settle_to::release || op.items[i].to == settle_to::retry)
      has_more_work();
  }
}

/// Only what was cancelled: a kernel that waits for a row which runs on would be told without end.
void queue_news::collect(const store::cancel_dispatch& op, const store::any_reply& any) {
  const auto* cancelled = std::get_if<store::cancel_dispatch::reply>(&any);
  if (cancelled == nullptr || cancelled->result != settle_result::accepted)
    return;
  settled_.push_back(op.dispatch_id);
}

void queue_news::collect(const job<store_request, store_reply>& j) {
  if (!j.reply) {
    for (const auto& op : j.request.operations)
      if (const auto* c = std::get_if<store::claim>(&op); c && is_final_refusal(j.reply.error()))
        refused_.push_back({c->kernel_id, c->agent_id, j.reply.error()});
    return;
  }
  const auto& values = store_replies::of(*j.reply);
  for (std::size_t i = 0; i < j.request.operations.size() && i < values.size(); ++i) {
    const auto& op = j.request.operations[i];
    const auto& value = values[i];
    if (const auto* s = std::get_if<store::settle>(&op))
      collect(*s, value);
    else if (const auto* c = std::get_if<store::cancel_dispatch>(&op))
      collect(*c, value);
    else if (const auto* e = std::get_if<store::enqueue_cycle>(&op))
      collect(*e, value);
    else if (means_work(op, value, j.reply->repeated))
      has_more_work();
  }
}

} // namespace boyd
