#include "boyd/queue/spend.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace boyd::queue {

namespace {

/// Both at least 0.
std::int64_t add(std::int64_t a, std::int64_t b) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return a > most - b ? most : a + b;
}

/// 0 is no limit.
bool goes_beyond(std::int64_t limit, std::int64_t total, std::int64_t more) {
  return limit > 0 && add(total, more) > limit;
}

/// The first limit that does not allow it.
std::optional<std::size_t> refusing(const store::reserve_spend& op,
                                    const std::vector<spend_total>& totals) {
  const auto more = counted(op.most);
  for (std::size_t i = 0; i < op.limits.size(); ++i)
    if (goes_beyond(op.limits[i].tokens, totals[i].tokens, more.tokens) ||
        goes_beyond(op.limits[i].cost, totals[i].cost, more.cost))
      return i;
  return std::nullopt;
}

std::int64_t replaced(std::int64_t total, std::int64_t old, std::int64_t now) {
  return add(std::max<std::int64_t>(total - old, 0), now);
}

} // namespace

std::string agent_scope(const std::string& kernel_id, const std::string& agent_id) {
  return "agent:" + kernel_id + "/" + agent_id;
}

std::string node_scope(const std::string& node_id) {
  return "node:" + node_id;
}

spend_total counted(const store::usage_counts& usage) {
  return {usage.tokens(), usage.cost};
}

std::vector<std::string> scopes_of(const store::reserve_spend& op) {
  std::vector<std::string> out;
  for (const auto& l : op.limits)
    out.push_back(l.scope);
  return out;
}

store::reserve_spend::reply decide_spend(const store::reserve_spend& op, bool stands,
                                         std::vector<spend_total>& totals) {
  store::reserve_spend::reply reply;
  const auto refused = stands ? std::nullopt : refusing(op, totals);
  reply.granted = !refused;
  if (refused)
    reply.refused_scope = op.limits[*refused].scope;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (!stands && !refused)
      settle_total(totals[i], {}, counted(op.most));
    reply.totals.push_back({op.limits[i].scope, totals[i].tokens, totals[i].cost});
  }
  return reply;
}

void settle_total(spend_total& total, const spend_total& reserved, const spend_total& used) {
  total.tokens = replaced(total.tokens, reserved.tokens, used.tokens);
  total.cost = replaced(total.cost, reserved.cost, used.cost);
}

call_holder holder_of(const store::spend_call& call) {
  call_holder h;
  if (const auto slash = call.dispatch_id.find('/'); slash != std::string::npos) {
    h.cycle_id = call.dispatch_id.substr(0, slash);
    return h;
  }
  h.dispatch_id = call.dispatch_id;
  const auto begin = call.dispatch_id.size() + 1;
  if (begin < call.call_id.size())
    std::from_chars(call.call_id.data() + begin, call.call_id.data() + call.call_id.size(),
                    h.fence);
  return h;
}

store::release_spend::reply decide_release(const store::release_spend& op, store::spend_call call,
                                           bool running, utc_time now) {
  using outcome = store::release_spend::outcome_t;
  auto& counts = call.counts;
  const auto tokens = counts.tokens() - op.used_tokens;
  const auto cost = counts.cost - op.used_cost;
  if (tokens < 0 || cost < 0)
    return {outcome::more, std::move(call)};
  if (running && !call.settled && !op.force)
    return {outcome::running, std::move(call)};
  if (tokens == 0 && cost == 0 && !call.is_open())
    return {outcome::released, std::move(call)};
  counts.input = std::min(counts.input, op.used_tokens);
  counts.output = op.used_tokens - counts.input;
  counts.cached = std::min(counts.cached, counts.input);
  counts.reasoning = std::min(counts.reasoning, counts.output);
  counts.cost = op.used_cost;
  const auto before = call.release.value_or(store::spend_release{});
  call.release = {now, op.by, op.reason, add(before.tokens, tokens), add(before.cost, cost)};
  return {outcome::released, std::move(call)};
}

} // namespace boyd::queue
