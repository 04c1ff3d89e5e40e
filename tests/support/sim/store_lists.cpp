#include "boyd/queue/dispatch_ids.hpp"
#include "support/sim/store_transaction.hpp"

#include <algorithm>

namespace boyd::sim {

using namespace store;

namespace {

/// As the real stores list a row: long texts only when asked for.
dispatch shown(const queue::queue_row& row, bool bodies) {
  auto d = row.d;
  if (!bodies) {
    d.prompt.clear();
    d.outcome.output.clear();
  }
  return d;
}

bool matches(const list_dispatches& op, const dispatch& d) {
  return (op.kernel_id.empty() || d.kernel_id == op.kernel_id) &&
         (op.cycle_id.empty() || d.cycle_id == op.cycle_id) &&
         (op.not_cycle_id.empty() || d.cycle_id != op.not_cycle_id) &&
         (op.agent_id.empty() || d.agent_id == op.agent_id) &&
         std::find(op.not_agent_ids.begin(), op.not_agent_ids.end(), d.agent_id) ==
             op.not_agent_ids.end() &&
         (!op.status || d.status == *op.status) && (!op.ended_only || is_final(d.status)) &&
         (op.before.empty() || d.dispatch_id < op.before) &&
         (!op.finished_since || (d.finished_at && *d.finished_at >= *op.finished_since));
}

} // namespace

any_reply sim_transaction::run(const find_dispatch& op) {
  const auto& wanted = op.dispatch_id;
  std::optional<dispatch> found;
  const bool by_random_part = queue::may_be_random_part(wanted);
  auto it = by_random_part ? data_.dispatches.begin() : data_.dispatches.lower_bound(wanted);
  for (; it != data_.dispatches.end(); ++it) {
    const auto& id = it->first;
    if (!id.starts_with(wanted) &&
        !(by_random_part && queue::random_part_of(id).starts_with(wanted))) {
      if (!by_random_part)
        break;
      continue;
    }
    if (found)
      return error{errc::invalid_argument,
                   "more than one run has an id with " + wanted,
                   {},
                   "use more characters of the id"};
    found = shown(it->second, true);
    if (id == wanted)
      break;
  }
  return found;
}

any_reply sim_transaction::run(const list_dispatches& op) {
  std::vector<dispatch> out;
  for (auto it = data_.dispatches.rbegin(); it != data_.dispatches.rend() && out.size() < op.limit;
       ++it)
    if (matches(op, it->second.d))
      out.push_back(shown(it->second, op.with_bodies));
  return out;
}

any_reply sim_transaction::run(const latest_per_agent& op) {
  std::map<std::string, std::string> newest;
  for (const auto& [key, id] : data_.by_agent) {
    if (std::get<0>(key) != op.kernel_id)
      continue;
    auto& latest = newest[std::get<2>(key)];
    latest = std::max(latest, id);
  }
  std::vector<dispatch> out;
  for (const auto& [agent, id] : newest)
    out.push_back(shown(data_.dispatches.at(id), false));
  return out;
}

any_reply sim_transaction::run(const count_by_status& op) {
  count_by_status::reply reply;
  for (const auto& [id, row] : data_.dispatches)
    if (op.kernel_id.empty() || row.d.kernel_id == op.kernel_id)
      ++reply[row.d.status];
  return reply;
}

std::uint64_t sim_transaction::remove_dispatches(utc_time before, std::uint64_t limit) {
  std::vector<std::pair<utc_time, std::string>> old;
  for (const auto& [id, row] : data_.dispatches)
    if (row.d.finished_at && *row.d.finished_at < before)
      old.emplace_back(*row.d.finished_at, id);
  std::sort(old.begin(), old.end());
  old.resize(std::min<std::uint64_t>(old.size(), limit));
  for (const auto& [at, id] : old) {
    const auto& d = data_.dispatches.at(id).d;
    data_.by_agent.erase({d.kernel_id, d.cycle_id, d.agent_id});
    data_.dispatches.erase(id);
  }
  return old.size();
}

std::uint64_t sim_transaction::remove_cycles(utc_time before, std::size_t keep,
                                             std::uint64_t limit) {
  std::map<std::string, std::vector<const cycle_record*>> kernels;
  for (const auto& [id, c] : data_.cycles)
    kernels[c.kernel_id].push_back(&c);
  std::vector<std::string> old;
  for (auto& [kernel, all] : kernels) {
    std::ranges::sort(all, std::ranges::greater{}, [this](const cycle_record* c) {
      return data_.cycle_numbers.at(c->cycle_id);
    });
    for (std::size_t i = keep; i < all.size(); ++i)
      if (all[i]->finished_at && *all[i]->finished_at < before && old.size() < limit)
        old.push_back(all[i]->cycle_id);
  }
  for (const auto& id : old) {
    data_.cycles.erase(id);
    data_.cycle_numbers.erase(id);
  }
  return old.size();
}

std::uint64_t sim_transaction::end_left(const remove_finished& op) {
  if (op.node_id.empty())
    return 0;
  const auto last_seen = [&](const std::string& node, utc_time otherwise) {
    const auto seen = data_.nodes.find(node);
    return seen == data_.nodes.end() ? otherwise : seen->second.last_seen;
  };
  const auto is_lost = [&](const std::string& node, utc_time otherwise) {
    return node != op.node_id && last_seen(node, otherwise) < now_ - op.node_age;
  };
  std::uint64_t cycles = 0;
  for (auto& [id, c] : data_.cycles) {
    if (cycles == op.limit || c.status != cycle_status::running ||
        !is_lost(c.node_id, c.started_at))
      continue;
    c.status = cycle_status::error;
    c.error = "its node " + c.node_id + " did not return";
    c.finished_at = std::max(last_seen(c.node_id, c.started_at), c.started_at);
    c.duration_ms = (*c.finished_at - c.started_at).count();
    ++cycles;
  }
  std::uint64_t slots = 0;
  for (auto& [key, o] : data_.slots) {
    if (slots == op.limit || o.state != occurrence_state::open || !is_lost(o.node_id, o.created_at))
      continue;
    o.state = data_.cycles.contains(o.cycle_id) ? occurrence_state::ran : occurrence_state::missed;
    o.reason = "its node " + o.node_id + " did not return";
    o.finished_at = now_;
    ++slots;
  }
  return cycles + slots;
}

any_reply sim_transaction::run(const remove_finished& op) {
  const auto ended = end_left(op);
  const auto before = now_ - op.age;
  std::uint64_t removed = remove_dispatches(before, op.limit);
  for (auto it = data_.decisions.begin(); it != data_.decisions.end() && removed < op.limit;) {
    const bool old = it->second.decided_at < before;
    removed += old ? 1 : 0;
    it = old ? data_.decisions.erase(it) : std::next(it);
  }
  for (auto it = data_.slots.begin(); it != data_.slots.end() && removed < op.limit;) {
    const bool old = it->second.finished_at && *it->second.finished_at < before;
    removed += old ? 1 : 0;
    it = old ? data_.slots.erase(it) : std::next(it);
  }
  for (auto it = data_.nodes.begin(); it != data_.nodes.end() && removed < op.limit;) {
    const bool old = it->second.last_seen < now_ - op.node_age;
    removed += old ? 1 : 0;
    it = old ? data_.nodes.erase(it) : std::next(it);
  }
  removed += remove_cycles(before, op.keep_cycles, op.limit - removed);
  removed += remove_spend(op.age, op.limit - removed);
  removed += remove_approvals(op.age, op.limit - removed);
  return remove_finished::reply{removed, ended};
}

} // namespace boyd::sim
