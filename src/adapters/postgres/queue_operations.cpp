#include "operations.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

std::string text_of(const answer& a, int row, int column) {
  return std::string{a.text(row, column)};
}

/// What identifies a dispatch before its id: kernel, cycle, agent.
using agent_key = std::tuple<std::string, std::string, std::string>;

agent_key key_of(const dispatch_spec& s) {
  return {s.kernel_id, s.cycle_id, s.agent_id};
}

std::set<std::string> insert_specs(session& db, const std::vector<const enqueue_cycle*>& ops) {
  array ids, kernels, cycles, agents, priorities, attempts, metadata, delays, prompts;
  for (const auto* op : ops)
    for (const auto& s : op->specs) {
      ids.add(s.dispatch_id);
      kernels.add(s.kernel_id);
      cycles.add(s.cycle_id);
      agents.add(s.agent_id);
      priorities.add(s.priority);
      attempts.add(s.max_attempts);
      metadata.add(s.metadata_json);
      delays.add(std::max(s.delay, milliseconds{0}).count());
      prompts.add(s.prompt);
    }
  const auto a = db.run(
      "WITH i AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], "
      "$4::text[], $5::int[], $6::int[], $7::text[], $8::bigint[], $9::text[]) WITH ORDINALITY AS "
      "t(dispatch_id, kernel_id, cycle_id, agent_id, priority, max_attempts, metadata, delay, "
      "prompt, place)), fresh AS (INSERT INTO dispatches(dispatch_id, kernel_id, cycle_id, "
      "agent_id, priority, max_attempts, metadata, status, not_before, created_at) SELECT "
      "dispatch_id, kernel_id, cycle_id, agent_id, priority, max_attempts, metadata::jsonb, "
      "'pending', now_ms() + delay, now_ms() FROM i ORDER BY place ON CONFLICT DO NOTHING "
      "RETURNING dispatch_id), bodies AS (INSERT INTO dispatch_prompts(dispatch_id, prompt) SELECT "
      "DISTINCT ON (dispatch_id) dispatch_id, prompt FROM i JOIN fresh USING (dispatch_id) ORDER "
      "BY dispatch_id, place) SELECT dispatch_id FROM fresh",
      parameters{}
          .add(ids)
          .add(kernels)
          .add(cycles)
          .add(agents)
          .add(priorities)
          .add(attempts)
          .add(metadata)
          .add(delays)
          .add(prompts));
  std::set<std::string> fresh;
  for (int r = 0; r < a.rows(); ++r)
    fresh.insert(text_of(a, r, 0));
  return fresh;
}

/// The ids of the rows that stand for the specs that were not inserted.
std::map<agent_key, std::string> standing(session& db, const std::vector<const enqueue_cycle*>& ops,
                                          const std::set<std::string>& fresh) {
  array kernels, cycles, agents;
  bool any = false;
  for (const auto* op : ops)
    for (const auto& s : op->specs)
      if (!fresh.contains(s.dispatch_id)) {
        any = true;
        kernels.add(s.kernel_id);
        cycles.add(s.cycle_id);
        agents.add(s.agent_id);
      }
  std::map<agent_key, std::string> out;
  if (!any)
    return out;
  const auto a =
      db.run("SELECT d.kernel_id, d.cycle_id, d.agent_id, d.dispatch_id FROM "
             "unnest($1::text[], $2::text[], $3::text[]) AS i(k, c, g) JOIN dispatches d "
             "ON d.kernel_id = i.k AND d.cycle_id = i.c AND d.agent_id = i.g",
             parameters{}.add(kernels).add(cycles).add(agents));
  for (int r = 0; r < a.rows(); ++r)
    out[{text_of(a, r, 0), text_of(a, r, 1), text_of(a, r, 2)}] = text_of(a, r, 3);
  return out;
}

void insert_decisions(session& db, const std::vector<const enqueue_cycle*>& ops) {
  array kernels, cycles, agents, dispatched, reasons, details;
  bool any = false;
  for (const auto* op : ops)
    for (const auto& d : op->decisions) {
      any = true;
      kernels.add(op->kernel_id);
      cycles.add(op->cycle_id);
      agents.add(d.agent_id);
      dispatched.add(d.dispatched ? "t" : "f");
      reasons.add(d.reason);
      details.add(d.detail);
    }
  if (any)
    db.run("INSERT INTO decisions(kernel_id, cycle_id, agent_id, decided_at, dispatched, reason, "
           "detail) SELECT k, c, g, now_ms(), d, r, x FROM unnest($1::text[], $2::text[], "
           "$3::text[], $4::boolean[], $5::text[], $6::text[]) AS i(k, c, g, d, r, x) ON CONFLICT "
           "DO NOTHING",
           parameters{}
               .add(kernels)
               .add(cycles)
               .add(agents)
               .add(dispatched)
               .add(reasons)
               .add(details));
}

} // namespace

std::vector<any_reply> operations::run(const std::vector<const enqueue_cycle*>& ops) {
  auto fresh = insert_specs(db_, ops);
  const auto older = standing(db_, ops, fresh);
  insert_decisions(db_, ops);
  std::vector<any_reply> replies;
  std::map<agent_key, std::string> inserted;
  for (const auto* op : ops) {
    enqueue_cycle::reply reply;
    std::optional<error> taken;
    for (const auto& spec : op->specs) {
      const auto key = key_of(spec);
      if (fresh.erase(spec.dispatch_id) > 0) {
        ++reply.inserted;
        inserted[key] = spec.dispatch_id;
        woken_.insert(spec.kernel_id);
      }
      const auto here = inserted.find(key);
      const auto before = older.find(key);
      if (here != inserted.end())
        reply.dispatch_ids.push_back(here->second);
      else if (before != older.end())
        reply.dispatch_ids.push_back(before->second);
      else
        taken = error{
            errc::already_exists, "dispatch id " + spec.dispatch_id + " is taken", "store", {}};
    }
    if (taken)
      replies.emplace_back(*taken);
    else
      replies.emplace_back(std::move(reply));
  }
  return replies;
}

any_reply operations::run(const claim& op) {
  const std::string agent = op.agent_id.empty() ? "" : "AND agent_id = $5 ";
  const auto sql =
      "WITH picked AS MATERIALIZED (SELECT dispatch_id FROM dispatches WHERE status = 'pending' "
      "AND kernel_id = $1 " +
      agent +
      "AND not_before <= now_ms() ORDER BY priority DESC, created_at, dispatch_id LIMIT "
      "$2::bigint FOR UPDATE SKIP LOCKED), d AS (UPDATE dispatches t SET status='running', "
      "attempt=t.attempt+1, fence=t.fence+1, lease_owner=$3, last_owner=$3, "
      "lease_expires_at=now_ms()+$4::bigint, started_at=now_ms(), execution='none', claim='none', "
      "verification='none', failure_class='none', exit_code=-1, output_cut=0, session_id='', "
      "summary='', error='', usage='' FROM picked WHERE t.dispatch_id = picked.dispatch_id "
      "RETURNING t.*) SELECT " +
      std::string{row_columns()} +
      ", p.prompt FROM d JOIN dispatch_prompts p USING (dispatch_id) ORDER BY d.priority DESC, "
      "d.created_at, d.dispatch_id";
  parameters p;
  p.add(op.kernel_id).add(static_cast<std::int64_t>(op.limit)).add(op.node_id);
  p.add(op.lease.count());
  if (!op.agent_id.empty())
    p.add(op.agent_id);
  const auto a = db_.run(sql, p);
  std::vector<claimed_dispatch> out;
  for (int r = 0; r < a.rows(); ++r) {
    auto row = read_row(a, r);
    row.d.prompt = text_of(a, r, row_column_count);
    out.push_back({std::move(row.d), op.lease});
  }
  return out;
}

std::vector<any_reply> operations::run(const std::vector<const settle*>& ops) {
  array ids;
  for (const auto* op : ops)
    for (const auto& item : op->items)
      ids.add(item.dispatch_id);
  auto all = lock(ids);
  std::set<const queue::queue_row*> changed;
  std::vector<any_reply> replies;
  for (const auto* op : ops) {
    std::vector<settle_result> results;
    for (const auto& item : op->items) {
      auto* row = find(all, item.dispatch_id);
      results.push_back(row == nullptr ? settle_result::not_found
                                       : queue::settle_row(*row, item, all.now));
      if (results.back() == settle_result::accepted)
        changed.insert(row);
    }
    replies.emplace_back(std::move(results));
  }
  const std::vector<const queue::queue_row*> rows(changed.begin(), changed.end());
  save(rows);
  save_outputs(rows);
  return replies;
}

std::vector<any_reply> operations::run(const std::vector<const renew_leases*>& ops) {
  array ids;
  for (const auto* op : ops)
    for (const auto& item : op->items)
      ids.add(item.dispatch_id);
  auto all = lock(ids);
  array held;
  array leases;
  std::vector<any_reply> replies;
  for (const auto* op : ops) {
    renew_leases::reply reply;
    for (const auto& item : op->items) {
      const auto* row = find(all, item.dispatch_id);
      if (row == nullptr || !queue::holds(*row, op->node_id, item.fence)) {
        reply.lost.push_back(item.dispatch_id);
        continue;
      }
      held.add(item.dispatch_id);
      leases.add(op->lease.count());
    }
    replies.emplace_back(std::move(reply));
  }
  db_.run("UPDATE dispatches d SET lease_expires_at = now_ms() + i.l FROM unnest($1::text[], "
          "$2::bigint[]) AS i(id, l) WHERE d.dispatch_id = i.id",
          parameters{}.add(held).add(leases));
  return replies;
}

take_back::reply operations::give_back(locked all, int max_rescues) {
  take_back::reply reply;
  std::vector<const queue::queue_row*> changed;
  for (auto& row : all.rows) {
    const bool poisoned = queue::rescue_row(row, max_rescues, all.now);
    (poisoned ? reply.poisoned : reply.returned).push_back(row.d.dispatch_id);
    changed.push_back(&row);
  }
  save(changed);
  return reply;
}

any_reply operations::run(const take_back& op) {
  return give_back(
      lock_where("d.status = 'running' AND d.lease_owner = $1 ORDER BY d.dispatch_id "
                 "LIMIT $2::bigint FOR UPDATE SKIP LOCKED",
                 parameters{}.add(op.node_id).add(static_cast<std::int64_t>(op.limit))),
      op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  return give_back(lock_where("d.status = 'running' AND d.lease_expires_at <= now_ms() ORDER BY "
                              "d.lease_expires_at, d.dispatch_id LIMIT $1::bigint FOR UPDATE SKIP "
                              "LOCKED",
                              parameters{}.add(static_cast<std::int64_t>(op.limit))),
                   op.max_rescues);
}

template <class Reply>
any_reply operations::change_one(const std::string& id,
                                 Reply (*rule)(queue::queue_row&, utc_time)) {
  auto all = lock(array{}.add(id));
  if (all.rows.empty())
    return Reply{};
  const auto reply = rule(all.rows.front(), all.now);
  if (reply.result == settle_result::accepted)
    save({&all.rows.front()});
  return reply;
}

any_reply operations::run(const retry_dispatch& op) {
  return change_one(op.dispatch_id, &queue::retry_row);
}

any_reply operations::run(const cancel_dispatch& op) {
  auto reply = change_one(op.dispatch_id, &queue::cancel_row);
  // A row that was tried again may have the output of an earlier attempt.
  if (std::get<cancel_dispatch::reply>(reply).result == settle_result::accepted)
    db_.run("DELETE FROM dispatch_outputs WHERE dispatch_id = $1",
            parameters{}.add(op.dispatch_id));
  return reply;
}

any_reply operations::run(const due_agents&) {
  // Steps from one agent to the next along dispatches_claim instead of reading every row.
  const auto a = db_.run(
      "WITH RECURSIVE a(k, g) AS ((SELECT kernel_id, agent_id FROM dispatches WHERE "
      "status='pending' ORDER BY kernel_id, agent_id LIMIT 1) UNION ALL SELECT n.kernel_id, "
      "n.agent_id FROM a, LATERAL (SELECT kernel_id, agent_id FROM dispatches WHERE "
      "status='pending' AND (kernel_id, agent_id) > (a.k, a.g) ORDER BY kernel_id, agent_id LIMIT "
      "1) n) SELECT a.k, a.g, c.best, c.n FROM a, LATERAL (SELECT count(*) AS n, max(priority) AS "
      "best FROM (SELECT priority FROM dispatches WHERE status='pending' AND kernel_id=a.k AND "
      "agent_id=a.g AND not_before <= now_ms() ORDER BY priority DESC LIMIT $1::bigint) due) c "
      "WHERE c.n > 0 ORDER BY 1, 2",
      parameters{}.add(static_cast<std::int64_t>(queue::due_count_cap)));
  due_agents::reply reply;
  for (int r = 0; r < a.rows(); ++r)
    reply.due.push_back({text_of(a, r, 0), text_of(a, r, 1), static_cast<int>(a.integer(r, 2)),
                         static_cast<std::uint64_t>(a.integer(r, 3))});
  const auto next = db_.run("SELECT not_before - now_ms() FROM dispatches WHERE status='pending' "
                            "AND not_before > created_at AND not_before > now_ms() ORDER BY "
                            "not_before LIMIT 1");
  if (next.rows() > 0)
    reply.next_in = milliseconds{next.integer(0, 0)};
  return reply;
}

} // namespace boyd::adapters::postgres
