#include "operations.hpp"

#include <algorithm>

namespace boyd::adapters::postgres {

using namespace store;

operations::found_rows operations::settled_rows(const std::vector<const std::string*>& ids,
                                                const locked_claims& claims) {
  found_rows found;
  found.all.reserve(ids.size());
  found.places.reserve(ids.size());
  array resting;
  for (const auto* id : ids) {
    const auto place = claims.places.find(*id);
    const bool runs = place != claims.places.end();
    if (!found.places.try_emplace(*id, found.all.size()).second)
      continue;
    if (!runs)
      resting.add(*id);
    found.all.push_back(runs ? running(claims.all[place->second.claim], *id) : stored{});
  }
  std::vector<stored*> attempted;
  for (auto& s : found.all)
    if (s.attempted)
      attempted.push_back(&s);
  load_results(attempted);
  if (resting.empty())
    return found;
  // Nobody runs these: what was settled last, and by whom, tells a repeat from a theft.
  const auto a =
      db_.run("SELECT d.dispatch_id, coalesce(s.settled_fence, 0), coalesce(s.fence, 0), "
              "coalesce(s.last_owner, '') FROM "
              "dispatch_requests d LEFT JOIN dispatch_results s USING (dispatch_id) "
              "WHERE d.dispatch_id = ANY($1::text[])",
              parameters{}.add(resting));
  for (int r = 0; r < a.rows(); ++r) {
    auto& s = found.all[found.places.at(a.text(r, 0))];
    s.row.d.dispatch_id = std::string{a.text(r, 0)};
    s.row.settled_fence = a.integer(r, 1);
    s.row.d.fence = a.integer(r, 2);
    s.row.last_owner = std::string{a.text(r, 3)};
  }
  return found;
}

std::vector<any_reply> operations::run(const std::vector<const settle*>& ops) {
  std::vector<const std::string*> ids;
  for (const auto* op : ops)
    for (const auto& item : op->items)
      ids.push_back(&item.dispatch_id);
  auto claims = lock_claims(ids);
  auto found = settled_rows(ids, claims);
  std::vector<const stored*> changed;
  std::vector<any_reply> replies;
  for (const auto* op : ops) {
    std::vector<settle_result> results;
    results.reserve(op->items.size());
    for (const auto& item : op->items) {
      auto& s = found.all[found.places.at(item.dispatch_id)];
      // Without an id there is no such dispatch.
      results.push_back(s.row.d.dispatch_id.empty()
                            ? settle_result::not_found
                            : queue::settle_row(s.row, op->node_id, item, now()));
      if (results.back() != settle_result::accepted)
        continue;
      claims.leave(item.dispatch_id);
      changed.push_back(&s);
    }
    replies.emplace_back(std::move(results));
  }
  write_back(changed);
  close_claims(claims);
  return replies;
}

std::vector<any_reply> operations::run(const std::vector<const renew_leases*>& ops) {
  std::vector<const std::string*> ids;
  for (const auto* op : ops)
    for (const auto& item : op->items)
      ids.push_back(&item.dispatch_id);
  auto claims = lock_claims(ids);
  // Of each claim, its members by the length of their new lease.
  std::vector<std::map<std::size_t, milliseconds>> renewed(claims.all.size());
  std::vector<any_reply> replies;
  for (const auto* op : ops) {
    renew_leases::reply reply;
    for (const auto& item : op->items) {
      const auto place = claims.places.find(item.dispatch_id);
      const auto* c = place == claims.places.end() ? nullptr : &claims.all[place->second.claim];
      if (c == nullptr || c->owner != op->node_id || c->fence != item.fence)
        reply.lost.push_back(item.dispatch_id);
      else
        renewed[place->second.claim][place->second.member] = op->lease;
    }
    replies.emplace_back(std::move(reply));
  }
  renew(claims, renewed);
  return replies;
}

void operations::renew(locked_claims& claims,
                       const std::vector<std::map<std::size_t, milliseconds>>& renewed) {
  array whole;
  array leases;
  array origins;
  array parts;
  array part_leases;
  for (std::size_t i = 0; i < claims.all.size(); ++i) {
    auto& c = claims.all[i];
    std::map<milliseconds, array> by_lease;
    for (const auto& [member, lease] : renewed[i])
      by_lease[lease].add(c.members[member]);
    if (by_lease.size() == 1 && renewed[i].size() == c.members.size()) {
      whole.add(c.no);
      leases.add(by_lease.begin()->first.count());
      continue;
    }
    // What is not renewed must not live longer: those that are get a claim of their own.
    for (const auto& [lease, members] : by_lease) {
      origins.add(c.no);
      parts.add(members.literal());
      part_leases.add(lease.count());
    }
    for (const auto& [member, lease] : renewed[i])
      c.left[member] = true;
  }
  if (!whole.empty())
    db_.later("UPDATE dispatch_running r SET lease_expires_at = now_ms() + i.l FROM "
              "unnest($1::bigint[], $2::bigint[]) AS i(no, l) WHERE r.claim_no = i.no",
              parameters{}.add(whole).add(leases));
  if (!origins.empty())
    db_.later(
        "INSERT INTO dispatch_running(agent_no, owner, lease_expires_at, started_at, fence, "
        "attempt, attempted, members) SELECT r.agent_no, r.owner, now_ms() + i.l, "
        "r.started_at, r.fence, r.attempt, r.attempted, i.m::text[] FROM unnest($1::bigint[], "
        "$2::text[], $3::bigint[]) AS i(no, m, l) JOIN dispatch_running r ON r.claim_no = i.no",
        parameters{}.add(origins).add(parts).add(part_leases));
  close_claims(claims);
}

/// `chosen`: the claims whose members come first, which are at least $1 or all; `condition`: on a
/// claim r of them.
take_back::reply operations::give_back(const std::string& chosen, const std::string& condition,
                                       bool by_lease, const parameters& p, std::size_t limit,
                                       int max_rescues) {
  auto claims = read_claims("r.claim_no IN (" + chosen + ") AND (" + condition +
                                ") ORDER BY r.claim_no FOR UPDATE SKIP LOCKED",
                            p);
  std::vector<stored> rows;
  for (const auto& c : claims.all)
    for (const auto& id : c.members)
      rows.push_back(running(c, id));
  const auto key = [&](const stored& s) {
    return std::pair{by_lease ? s.row.d.lease_expires_at : std::nullopt,
                     std::string_view{s.row.d.dispatch_id}};
  };
  std::sort(rows.begin(), rows.end(),
            [&](const stored& a, const stored& b) { return key(a) < key(b); });
  rows.resize(std::min(rows.size(), limit));
  std::vector<stored*> attempted;
  for (auto& s : rows)
    if (s.attempted)
      attempted.push_back(&s);
  load_results(attempted);
  take_back::reply reply;
  std::vector<const stored*> changed;
  for (auto& s : rows) {
    const bool poisoned = queue::rescue_row(s.row, max_rescues, now());
    (poisoned ? reply.poisoned : reply.returned).push_back(s.row.d.dispatch_id);
    claims.leave(s.row.d.dispatch_id);
    changed.push_back(&s);
  }
  close_claims(claims);
  write_back(changed);
  return reply;
}

any_reply operations::run(const take_back& op) {
  return give_back(
      "SELECT r.claim_no FROM dispatch_running r, unnest(r.members) AS m(id) WHERE r.owner = $2 "
      "ORDER BY m.id LIMIT $1::bigint",
      "r.owner = $2", false,
      parameters{}.add(static_cast<std::int64_t>(op.limit)).add(std::string_view{op.node_id}),
      op.limit, op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  const auto asked =
      parameters{}.add(static_cast<std::int64_t>(op.limit)).add(std::string_view{op.node_id});
  rescue_expired::reply reply;
  const auto a = db_.run("SELECT m.id, r.agent_no, r.fence FROM dispatch_running r, "
                         "unnest(r.members) AS m(id) WHERE r.lease_expires_at <= now_ms() AND "
                         "r.owner = $2 ORDER BY r.lease_expires_at, m.id LIMIT $1::bigint",
                         asked);
  for (int row = 0; row < a.rows(); ++row) {
    const auto& agent = names_.of(a.integer(row, 1));
    reply.own.push_back(
        {std::string{a.text(row, 0)}, agent.kernel_id, agent.agent_id, a.integer(row, 2)});
  }
  // Locked before they are counted: a page of claims that somebody holds must not hide the others.
  static_cast<take_back::reply&>(reply) = give_back(
      "WITH free AS MATERIALIZED (SELECT r.claim_no, r.lease_expires_at AS at, "
      "cardinality(r.members) AS n FROM dispatch_running r WHERE r.lease_expires_at <= now_ms() "
      "AND r.owner <> $2 ORDER BY r.lease_expires_at, r.claim_no LIMIT $1::bigint FOR UPDATE SKIP "
      "LOCKED) SELECT f.claim_no FROM (SELECT claim_no, sum(n) OVER (ORDER BY at, claim_no) - n "
      "AS before FROM free) f WHERE f.before < $1::bigint",
      "r.lease_expires_at <= now_ms() AND r.owner <> $2", true, asked, op.limit, op.max_rescues);
  const auto next =
      db_.run("SELECT min(lease_expires_at) FILTER (WHERE lease_expires_at > now_ms()) - now_ms(), "
              "count(*) FILTER (WHERE lease_expires_at <= now_ms()) FROM dispatch_running WHERE "
              "owner <> $1",
              parameters{}.add(std::string_view{op.node_id}));
  if (!next.is_null(0, 0))
    reply.next_in = milliseconds{next.integer(0, 0)};
  reply.some_left = next.integer(0, 1) > 0;
  return reply;
}

std::optional<stored> operations::read_one(const std::string& dispatch_id) {
  static const auto sql =
      "SELECT " + std::string{row_columns()} +
      ", s.output FROM dispatch_requests d LEFT JOIN dispatch_results s USING (dispatch_id) LEFT "
      "JOIN dispatch_running r ON false WHERE d.dispatch_id = $1";
  const auto a = db_.run(sql, parameters{}.add(dispatch_id));
  if (a.rows() == 0)
    return std::nullopt;
  auto s = read_row(a, 0, names_);
  s.row.d.outcome.output = std::string{a.text(0, row_column_count)};
  return s;
}

namespace {

/// The row of dispatch_waiting that has dispatch $4: by its place in dispatch_waiting_order, so
/// that what else waits for the agent is not read. Members are in the order of their ids.
constexpr std::string_view waits_there =
    "agent_no = $1::int AND priority = $2::int AND created_at = $3::bigint AND first_id <= $4 AND "
    "members[size] >= $4 AND $4 = ANY(members)";

parameters place_of(const stored& s) {
  const auto& d = s.row.d;
  return parameters{}
      .add(s.agent->no)
      .add(d.priority)
      .add(to_unix_ms(d.created_at))
      .add(d.dispatch_id);
}

} // namespace

std::optional<stored> operations::hold(const std::string& dispatch_id) {
  constexpr int most_looks = 3;
  for (int look = 0; look < most_looks; ++look) {
    const auto claims = lock_claims({&dispatch_id});
    if (const auto at = claims.places.find(dispatch_id); at != claims.places.end())
      return running(claims.all[at->second.claim], dispatch_id);
    const auto held = db_.run("SELECT 1 FROM dispatch_results WHERE dispatch_id = $1 AND "
                              "finished_at IS NOT NULL FOR UPDATE",
                              parameters{}.add(dispatch_id));
    auto s = read_one(dispatch_id);
    if (!s || held.rows() > 0)
      return s;
    static const auto sql =
        "SELECT 1 FROM dispatch_waiting WHERE " + std::string{waits_there} + " FOR UPDATE";
    const auto waits = db_.run(sql, place_of(*s));
    if (waits.rows() > 0)
      return read_one(dispatch_id);
    // It went from one place to another meanwhile: look again.
  }
  throw failure{{errc::conflict, "dispatch " + dispatch_id + " keeps changing", "store", {}},
                false};
}

void operations::take_out(const stored& s) {
  static const auto sql =
      "WITH w AS (DELETE FROM dispatch_waiting WHERE " + std::string{waits_there} +
      " RETURNING *), at AS (SELECT *, array_position(members, $4) AS i FROM w), rest AS "
      "(SELECT *, members[:i - 1] || members[i + 1:] AS others FROM at WHERE size > 1) INSERT "
      "INTO dispatch_waiting(agent_no, priority, created_at, first_id, not_before, size, "
      "attempted, members, max_attempts, metadata, bodies) SELECT agent_no, priority, "
      "created_at, others[1], not_before, size - 1, attempted, others, max_attempts, metadata, "
      "bodies[:i - 1] || bodies[i + 1:] FROM rest";
  db_.later(sql, place_of(s));
}

void operations::loosen(const stored& s) {
  db_.later(
      "WITH w AS (DELETE FROM dispatch_waiting WHERE agent_no = $1::int AND priority = $2::int "
      "AND created_at = $3::bigint AND first_id < $4 AND members[size] > $4 RETURNING *) "
      "INSERT INTO dispatch_waiting(agent_no, priority, created_at, first_id, not_before, "
      "size, attempted, members, max_attempts, metadata, bodies) SELECT agent_no, "
      "priority, created_at, members[i], not_before, 1, attempted, members[i:i], max_attempts, "
      "metadata, bodies[i:i] FROM w, generate_subscripts(members, 1) AS i",
      place_of(s));
}

any_reply operations::run(const retry_dispatch& op) {
  auto held = hold(op.dispatch_id);
  if (!held)
    return retry_dispatch::reply{};
  const auto reply = queue::retry_row(held->row, now());
  if (reply.result == settle_result::accepted) {
    count(*held, reply.was, -1);
    loosen(*held);
    write_back({&*held});
  }
  return reply;
}

any_reply operations::run(const cancel_dispatch& op) {
  auto held = hold(op.dispatch_id);
  if (!held)
    return cancel_dispatch::reply{};
  const auto reply = queue::cancel_row(held->row, now(), op.cause);
  if (reply.result == settle_result::accepted) {
    take_out(*held);
    write_back({&*held});
  }
  return reply;
}

} // namespace boyd::adapters::postgres
