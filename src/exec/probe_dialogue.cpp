#include "boyd/exec/probe_dialogue.hpp"

#include <iterator>
#include <utility>

namespace boyd::exec {

probe_dialogue::probe_dialogue(probe_order order)
    : order_(std::move(order)),
      probe_(order_.target.provider, order_.target.model, order_.target.key) {}

/// The next call.
chat_effects probe_dialogue::begin() {
  auto next = probe_.next();
  if (!next)
    return {effect::talk_over{}};
  next_ = std::move(*next);
  ++call_;
  if (!reserved())
    return start_call();
  effect::reserve ask;
  ask.call = call_;
  ask.what.call_id = call_id();
  ask.what.dispatch_id = order_.run_id;
  ask.what.kernel_id = order_.kernel_id;
  ask.what.agent_id = order_.agent_id;
  ask.what.provider_id = order_.target.provider.provider_id;
  ask.what.model = order_.target.model;
  ask.what.most = {next_.most.input, 0, next_.most.output, 0, cost_of(next_.most)};
  ask.what.limits = order_.scopes;
  return {std::move(ask)};
}

chat_effects probe_dialogue::start_call() {
  head_ = {};
  body_.clear();
  called_at_ = order_.now();
  request_bytes_ = next_.request.body.size();
  return {effect::call_model{call_, std::move(next_.request)}};
}

chat_effects probe_dialogue::on_reserved(std::uint64_t call,
                                         const result<store::reserve_spend::reply>& r) {
  if (call != call_)
    return {};
  if (r && r->granted)
    return start_call();
  if (!r)
    probe_.stop("the database refused the reservation: " + to_string(r.error()),
                "see: boyd doctor");
  else
    probe_.stop("today's budget of the node does not allow the call",
                "wait until 00:00 UTC, or raise node.budget_day");
  return begin();
}

void probe_dialogue::on_head(std::uint64_t call, const http_head& head) {
  if (call == call_)
    head_ = head;
}

void probe_dialogue::on_body(std::uint64_t call, std::string_view bytes) {
  if (call == call_)
    body_ += bytes;
}

chat_effects probe_dialogue::on_call_end(std::uint64_t call, const result<void>& transport) {
  if (call != call_)
    return {};
  const auto took = std::chrono::duration_cast<milliseconds>(order_.now() - called_at_);
  auto used = probe_.finish(head_, body_, transport, took);
  chat_effects effects;
  if (used && reserved()) {
    if (auto excess = model::cap_usage(*used, request_bytes_, next_.most.output); !excess.empty())
      effects.emplace_back(
          effect::warn{"provider " + order_.target.provider.provider_id + ": " + excess});
    const auto cost = cost_of(*used);
    used_.input += used->input;
    used_.output += used->output;
    cost_ += cost;
    effects.emplace_back(effect::settle_spend{
        {call_id(), {used->input, used->cached, used->output, used->reasoning, cost}}});
  }
  auto more = begin();
  std::move(more.begin(), more.end(), std::back_inserter(effects));
  return effects;
}

} // namespace boyd::exec
