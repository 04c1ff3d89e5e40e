#include "boyd/core/day.hpp"
#include "support/sim/store_transaction.hpp"

#include <algorithm>

namespace boyd::sim {

using namespace store;

any_reply sim_transaction::run(const reserve_spend& op) {
  const auto day = utc_day(now_);
  std::vector<queue::spend_total> totals;
  for (const auto& l : op.limits) {
    const auto it = data_.spend_totals.find({day, l.scope});
    totals.push_back(it == data_.spend_totals.end() ? queue::spend_total{} : it->second);
  }
  const bool stands = data_.spend.contains(op.call_id);
  auto reply = queue::decide_spend(op, stands, totals);
  if (stands || !reply.granted)
    return reply;
  data_.spend[op.call_id] = {op, day, op.most, false, ++data_.reservations, now_, {}};
  for (std::size_t i = 0; i < totals.size(); ++i)
    data_.spend_totals[{day, op.limits[i].scope}] = totals[i];
  return reply;
}

any_reply sim_transaction::run(const settle_spend& op) {
  const auto it = data_.spend.find(op.call_id);
  if (it == data_.spend.end() || it->second.settled)
    return ok{};
  change_spend(it->second, op.used);
  if (!op.model.empty())
    it->second.asked.model = op.model;
  it->second.settled = true;
  return ok{};
}

void sim_transaction::change_spend(sim_database::spent_call& call, const usage_counts& used) {
  for (const auto& l : call.asked.limits)
    if (const auto t = data_.spend_totals.find({call.day, l.scope}); t != data_.spend_totals.end())
      queue::settle_total(t->second, queue::counted(call.counts), queue::counted(used));
  call.counts = used;
}

namespace {

spend_call shown(const sim_database::spent_call& c) {
  const auto& a = c.asked;
  return {a.call_id,     c.day,   c.created_at, a.dispatch_id, a.kernel_id, a.agent_id,
          a.provider_id, a.model, c.counts,     c.settled,     c.release};
}

} // namespace

any_reply sim_transaction::run(const list_spend& op) {
  const auto today = utc_day(now_);
  const auto from = op.from_day.empty() ? today : op.from_day;
  const auto to = op.to_day.empty() ? today : op.to_day;
  list_spend::reply out;
  for (const auto& [id, c] : data_.spend) {
    if (op.call_id.empty() ? c.day < from || c.day > to : !id.starts_with(op.call_id))
      continue;
    auto call = shown(c);
    if ((op.kernel_id.empty() || op.kernel_id == call.kernel_id) &&
        (!op.open_only || call.is_open()))
      out.push_back(std::move(call));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &spend_call::created_at);
  out.resize(std::min(out.size(), op.limit));
  return out;
}

any_reply sim_transaction::run(const release_spend& op) {
  const auto it = data_.spend.find(op.call_id);
  if (it == data_.spend.end())
    return release_spend::reply{};
  const auto call = shown(it->second);
  const auto who = queue::holder_of(call);
  bool running = false;
  if (const auto c = data_.cycles.find(who.cycle_id); c != data_.cycles.end())
    running = c->second.status == cycle_status::running;
  if (const auto d = data_.dispatches.find(who.dispatch_id); d != data_.dispatches.end())
    running = d->second.d.status == dispatch_status::running && d->second.d.fence == who.fence;
  auto reply = queue::decide_release(op, call, running, now_);
  change_spend(it->second, reply.call->counts);
  it->second.release = reply.call->release;
  return reply;
}

std::map<std::string, sum_spend::row> sim_transaction::sums_of_scopes(const std::string& from,
                                                                      const std::string& to) {
  std::map<std::string, sum_spend::row> groups;
  for (const auto& [at, total] : data_.spend_totals) {
    if (at.first < from || at.first > to)
      continue;
    auto& row = groups[at.second];
    row.key = at.second;
    row.used.input += total.tokens;
    row.used.cost += total.cost;
  }
  return groups;
}

std::map<std::string, sum_spend::row> sim_transaction::sums_of_calls(const sum_spend& op,
                                                                     const std::string& from,
                                                                     const std::string& to) {
  std::map<std::string, sum_spend::row> groups;
  for (const auto& [id, call] : data_.spend) {
    const auto& a = call.asked;
    if (call.day < from || call.day > to || (!op.kernel_id.empty() && a.kernel_id != op.kernel_id))
      continue;
    const auto key = op.by == sum_spend::group::agent   ? a.kernel_id + "/" + a.agent_id
                     : op.by == sum_spend::group::model ? a.provider_id + "/" + a.model
                                                        : call.day;
    auto& row = groups[key];
    row.key = key;
    ++row.calls;
    row.open_calls += call.settled || call.release ? 0 : 1;
    row.used.input += call.counts.input;
    row.used.cached += call.counts.cached;
    row.used.output += call.counts.output;
    row.used.reasoning += call.counts.reasoning;
    row.used.cost += call.counts.cost;
  }
  return groups;
}

any_reply sim_transaction::run(const sum_spend& op) {
  const auto today = utc_day(now_);
  const auto from = op.from_day.empty() ? today : op.from_day;
  const auto to = op.to_day.empty() ? today : op.to_day;
  auto groups =
      op.by == sum_spend::group::scope ? sums_of_scopes(from, to) : sums_of_calls(op, from, to);
  std::vector<sum_spend::row> out;
  for (auto& [key, row] : groups)
    out.push_back(std::move(row));
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) {
    return std::pair(b.used.cost, b.used.tokens()) < std::pair(a.used.cost, a.used.tokens());
  });
  out.resize(std::min(out.size(), op.limit));
  return out;
}

std::uint64_t sim_transaction::remove_spend(milliseconds age, std::uint64_t limit) {
  const auto day = utc_day(now_ - age);
  std::uint64_t removed = 0;
  for (auto it = data_.spend.begin(); it != data_.spend.end() && removed < limit;) {
    const bool old = it->second.day < day;
    removed += old ? 1 : 0;
    it = old ? data_.spend.erase(it) : std::next(it);
  }
  for (auto it = data_.spend_totals.begin(); it != data_.spend_totals.end() && removed < limit;) {
    const bool old = it->first.first < day;
    removed += old ? 1 : 0;
    it = old ? data_.spend_totals.erase(it) : std::next(it);
  }
  return removed;
}

} // namespace boyd::sim
