#include "support/sim/store_transaction.hpp"

#include <algorithm>

namespace boyd::sim {

using namespace store;

any_reply sim_transaction::run(const open_occurrence& op) {
  auto slot = op.slot;
  if (slot.created_at == utc_time{})
    slot.created_at = now_;
  if (slot.state != occurrence_state::open && !slot.finished_at)
    slot.finished_at = now_;
  if (op.unless_paused && data_.pauses.contains({slot.kernel_id, {}}) &&
      !data_.slots.contains({slot.kernel_id, slot.scheduled_at}))
    return open_occurrence::reply{};
  const auto [it, added] = data_.slots.try_emplace({slot.kernel_id, slot.scheduled_at}, slot);
  const auto& stands = it->second;
  const bool own = op.slot.created_at != utc_time{} && slot.state == occurrence_state::open &&
                   stands.state == occurrence_state::open && stands.cycle_id == slot.cycle_id &&
                   stands.node_id == slot.node_id && stands.trigger == slot.trigger &&
                   stands.created_at == slot.created_at;
  if ((added || own) && op.cycle)
    run(begin_cycle{*op.cycle});
  return open_occurrence::reply{added || own};
}

any_reply sim_transaction::run(const close_occurrence& op) {
  const auto it = data_.slots.find({op.kernel_id, op.scheduled_at});
  if (it == data_.slots.end() || it->second.state != occurrence_state::open)
    return ok{};
  auto& slot = it->second;
  slot.state = op.state;
  slot.reason = op.reason;
  slot.cycle_id = op.cycle_id.empty() ? slot.cycle_id : op.cycle_id;
  slot.finished_at = now_;
  return ok{};
}

any_reply sim_transaction::run(const list_occurrences& op) {
  std::vector<occurrence> out;
  for (auto it = data_.slots.rbegin(); it != data_.slots.rend() && out.size() < op.limit; ++it)
    if (it->second.kernel_id == op.kernel_id &&
        (op.node_id.empty() || it->second.node_id == op.node_id) &&
        (!op.until || it->second.scheduled_at <= *op.until))
      out.push_back(it->second);
  return out;
}

any_reply sim_transaction::run(const begin_cycle& op) {
  auto cycle = op.cycle;
  if (cycle.started_at == utc_time{})
    cycle.started_at = now_;
  const auto [stands, added] = data_.cycles.try_emplace(cycle.cycle_id, cycle);
  if (added)
    data_.cycle_numbers[cycle.cycle_id] = ++data_.last_cycle;
  if (auto& row = stands->second; !added && row.status == cycle_status::running) {
    row.dispatched = cycle.dispatched;
    row.succeeded = cycle.succeeded;
    row.failed = cycle.failed;
    row.failed_agents = cycle.failed_agents;
    row.agents = cycle.agents;
    row.duration_ms = cycle.duration_ms;
    row.error = cycle.error;
  }
  const auto slot = data_.slots.find({cycle.kernel_id, cycle.scheduled_at});
  if (slot != data_.slots.end() && slot->second.cycle_id.empty())
    slot->second.cycle_id = cycle.cycle_id;
  return ok{};
}

any_reply sim_transaction::run(const finish_cycle& op) {
  auto cycle = op.cycle;
  if (cycle.started_at == utc_time{})
    cycle.started_at = now_;
  if (!cycle.finished_at)
    cycle.finished_at = now_;
  const auto [it, added] = data_.cycles.try_emplace(cycle.cycle_id, cycle);
  if (added)
    data_.cycle_numbers[cycle.cycle_id] = ++data_.last_cycle;
  if (!added) {
    cycle.kernel_id = it->second.kernel_id;
    cycle.scheduled_at = it->second.scheduled_at;
    cycle.started_at = it->second.started_at;
    it->second = cycle;
  }
  return ok{};
}

any_reply sim_transaction::run(const list_cycles& op) {
  std::vector<cycle_record> out;
  for (const auto& [id, c] : data_.cycles)
    if (c.kernel_id == op.kernel_id && (op.cycle_id.empty() || id == op.cycle_id) &&
        (op.node_id.empty() || c.node_id == op.node_id) &&
        (op.include_running || c.status != cycle_status::running))
      out.push_back(c);
  std::ranges::sort(out, std::ranges::greater{},
                    [this](const cycle_record& c) { return data_.cycle_numbers.at(c.cycle_id); });
  out.resize(std::min(out.size(), op.limit));
  return out;
}

any_reply sim_transaction::run(const list_decisions& op) {
  std::vector<list_decisions::row> out;
  for (const auto& [key, row] : data_.decisions)
    if (std::get<0>(key) == op.kernel_id &&
        (op.agent_id.empty() || row.decision.agent_id == op.agent_id) &&
        (op.cycle_id.empty() || row.cycle_id == op.cycle_id) &&
        (!op.until || row.decided_at <= *op.until))
      out.push_back(row);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(b.decided_at, b.cycle_id, a.decision.agent_id) <
           std::tie(a.decided_at, a.cycle_id, b.decision.agent_id);
  });
  out.resize(std::min(out.size(), op.limit));
  return out;
}

any_reply sim_transaction::run(const set_pause& op) {
  auto pause = op.pause;
  pause.since = now_;
  data_.pauses[{pause.kernel_id, pause.agent_id}] = pause;
  return ok{};
}

any_reply sim_transaction::run(const clear_pause& op) {
  return clear_pause::reply{data_.pauses.erase({op.kernel_id, op.agent_id}) > 0};
}

any_reply sim_transaction::run(const list_pauses& op) {
  std::vector<pause_record> out;
  for (const auto& [key, pause] : data_.pauses)
    if (op.kernel_id.empty() || pause.kernel_id == op.kernel_id)
      out.push_back(pause);
  return out;
}

any_reply sim_transaction::run(const put_fact& op) {
  if (op.value.empty())
    data_.facts[op.scope].erase(op.key);
  else
    data_.facts[op.scope][op.key] = op.value;
  return ok{};
}

any_reply sim_transaction::run(const get_facts& op) {
  const auto it = data_.facts.find(op.scope);
  return it == data_.facts.end() ? get_facts::reply{} : it->second;
}

any_reply sim_transaction::run(const beat& op) {
  auto& node = data_.nodes[op.node_id];
  node.first_seen = node.node_id.empty() ? now_ : node.first_seen;
  node.node_id = op.node_id;
  node.host = op.host;
  node.pid = op.pid;
  node.last_seen = now_;
  return ok{};
}

any_reply sim_transaction::run(const list_nodes&) {
  std::vector<list_nodes::row> out;
  for (const auto& [id, node] : data_.nodes)
    out.push_back(node);
  return out;
}

} // namespace boyd::sim
