#include "support/sim/store_transaction.hpp"

#include <algorithm>

namespace boyd::sim {

using namespace store;

namespace {

std::tuple<int, utc_time, std::string> claim_key(const dispatch& d) {
  return {-d.priority, d.created_at, d.dispatch_id};
}

} // namespace

void sim_transaction::index(const queue::queue_row& row) {
  const auto& d = row.d;
  if (d.status == dispatch_status::pending)
    data_.pending[{d.kernel_id, d.agent_id}].insert(claim_key(d));
  else if (d.status == dispatch_status::running)
    data_.running.insert(d.dispatch_id);
}

void sim_transaction::unindex(const queue::queue_row& row) {
  const auto& d = row.d;
  if (d.status == dispatch_status::running)
    data_.running.erase(d.dispatch_id);
  if (d.status != dispatch_status::pending)
    return;
  const auto it = data_.pending.find({d.kernel_id, d.agent_id});
  it->second.erase(claim_key(d));
  if (it->second.empty())
    data_.pending.erase(it);
}

template <class F>
auto sim_transaction::change(queue::queue_row& row, row_move why, F f, const attempt_holder& by) {
  const auto before = row_brief::of(row);
  unindex(row);
  auto out = f(row);
  index(row);
  audit_.moved(row.d.dispatch_id, before, row_brief::of(row), why, by, now_);
  return out;
}

any_reply sim_transaction::run(const enqueue_cycle& op) {
  enqueue_cycle::reply reply;
  for (const auto& spec : op.specs) {
    const auto [key, fresh] = data_.by_agent.try_emplace(
        {spec.kernel_id, spec.cycle_id, spec.agent_id}, spec.dispatch_id);
    if (fresh) {
      const auto [row, added] =
          data_.dispatches.try_emplace(spec.dispatch_id, queue::new_row(spec, now_));
      if (!added) {
        data_.by_agent.erase(key);
        return error{
            errc::already_exists, "dispatch id " + spec.dispatch_id + " is taken", "store", {}};
      }
      index(row->second);
      audit_.added(row->second);
      ++reply.inserted;
    }
    reply.dispatch_ids.push_back(key->second);
  }
  for (const auto& d : op.decisions)
    data_.decisions.try_emplace({op.kernel_id, op.cycle_id, d.agent_id},
                                list_decisions::row{op.cycle_id, now_, d});
  return reply;
}

any_reply sim_transaction::run(const claim& op) {
  std::vector<std::tuple<int, utc_time, std::string>> heads;
  for (auto it = data_.pending.lower_bound({op.kernel_id, op.agent_id});
       it != data_.pending.end() && it->first.first == op.kernel_id; ++it) {
    if (!op.agent_id.empty() && it->first.second != op.agent_id)
      break;
    std::size_t taken = 0;
    for (const auto& key : it->second) {
      if (taken == op.limit)
        break;
      if (waits_until(data_.dispatches.at(std::get<2>(key)).d) > now_)
        continue;
      heads.push_back(key);
      ++taken;
    }
  }
  std::sort(heads.begin(), heads.end());
  heads.resize(std::min(heads.size(), op.limit));
  std::vector<claimed_dispatch> out;
  for (const auto& key : heads) {
    auto& row = data_.dispatches.at(std::get<2>(key));
    out.push_back(change(row, row_move::claim, [&](queue::queue_row& r) {
      queue::claim_row(r, op.node_id, op.lease, now_);
      return claimed_dispatch{r.d, op.lease};
    }));
  }
  return out;
}

any_reply sim_transaction::run(const settle& op) {
  std::vector<settle_result> out;
  for (const auto& item : op.items) {
    const auto it = data_.dispatches.find(item.dispatch_id);
    if (it == data_.dispatches.end()) {
      out.push_back(settle_result::not_found);
      continue;
    }
    const auto end = [&](queue::queue_row& r) {
      return queue::settle_row(r, op.node_id, item, now_);
    };
    out.push_back(change(it->second, row_move::settle, end, {op.node_id, item.fence}));
    if (out.back() == settle_result::accepted)
      ++settled_[{item.dispatch_id, item.fence}];
  }
  return out;
}

any_reply sim_transaction::run(const renew_leases& op) {
  renew_leases::reply reply;
  for (const auto& item : op.items) {
    const auto it = data_.dispatches.find(item.dispatch_id);
    if (it == data_.dispatches.end() || !queue::holds(it->second, op.node_id, item.fence))
      reply.lost.push_back(item.dispatch_id);
    else
      it->second.d.lease_expires_at = now_ + op.lease;
  }
  return reply;
}

take_back::reply sim_transaction::give_back(const std::vector<std::string>& ids, int max_rescues,
                                            row_move why) {
  take_back::reply reply;
  for (const auto& id : ids) {
    const bool poisoned = change(data_.dispatches.at(id), why, [&](queue::queue_row& r) {
      return queue::rescue_row(r, max_rescues, now_);
    });
    (poisoned ? reply.poisoned : reply.returned).push_back(id);
  }
  return reply;
}

any_reply sim_transaction::run(const take_back& op) {
  std::vector<std::string> ids;
  for (const auto& id : data_.running)
    if (ids.size() < op.limit && data_.dispatches.at(id).d.lease_owner == op.node_id)
      ids.push_back(id);
  return give_back(ids, op.max_rescues, row_move::take_back);
}

any_reply sim_transaction::run(const rescue_expired& op) {
  std::vector<std::pair<utc_time, std::string>> expired;
  for (const auto& id : data_.running)
    if (const auto until = data_.dispatches.at(id).d.lease_expires_at; until && *until <= now_)
      expired.emplace_back(*until, id);
  std::sort(expired.begin(), expired.end());
  rescue_expired::reply reply;
  std::vector<std::string> ids;
  for (const auto& [until, id] : expired) {
    const auto& d = data_.dispatches.at(id).d;
    const bool own = d.lease_owner == op.node_id;
    if (own && reply.own.size() < op.limit)
      reply.own.push_back({id, d.kernel_id, d.agent_id, d.fence});
    if (!own && ids.size() < op.limit)
      ids.push_back(id);
  }
  static_cast<take_back::reply&>(reply) = give_back(ids, op.max_rescues, row_move::rescue);
  for (const auto& id : data_.running) {
    const auto& d = data_.dispatches.at(id).d;
    if (d.lease_owner == op.node_id || !d.lease_expires_at)
      continue;
    if (const auto left = *d.lease_expires_at - now_; left > milliseconds{0})
      reply.next_in = std::min(left, reply.next_in.value_or(left));
    else
      reply.some_left = true;
  }
  return reply;
}

any_reply sim_transaction::run(const retry_dispatch& op) {
  const auto it = data_.dispatches.find(op.dispatch_id);
  if (it == data_.dispatches.end())
    return retry_dispatch::reply{};
  return change(it->second, row_move::retry,
                [&](queue::queue_row& r) { return queue::retry_row(r, now_); });
}

any_reply sim_transaction::run(const cancel_dispatch& op) {
  const auto it = data_.dispatches.find(op.dispatch_id);
  if (it == data_.dispatches.end())
    return cancel_dispatch::reply{};
  return change(it->second, row_move::cancel,
                [&](queue::queue_row& r) { return queue::cancel_row(r, now_, op.cause); });
}

any_reply sim_transaction::run(const due_agents&) {
  due_agents::reply reply;
  for (const auto& [agent, keys] : data_.pending) {
    due_agents::row row{agent.first, agent.second, 0, 0};
    for (const auto& key : keys) {
      const auto not_before = waits_until(data_.dispatches.at(std::get<2>(key)).d);
      if (not_before > now_) {
        const auto in = not_before - now_;
        reply.next_in = reply.next_in ? std::min(*reply.next_in, in) : in;
      } else if (row.count < queue::due_count_cap) {
        row.priority = row.count == 0 ? -std::get<0>(key) : row.priority;
        ++row.count;
      }
    }
    if (row.count > 0)
      reply.due.push_back(row);
  }
  return reply;
}

} // namespace boyd::sim
