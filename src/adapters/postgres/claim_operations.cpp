#include "boyd/core/text.hpp"
#include "operations.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace boyd::embedded {
extern const char* const claim_sql;
} // namespace boyd::embedded

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// claim.sql for the rows that `picked` selects and `placed` places.
std::string claim_statement(const std::string& picked, const std::string& placed) {
  std::string sql = embedded::claim_sql;
  const auto fill = [&sql](std::string_view hole, const std::string& text) {
    sql.replace(sql.find(hole), hole.size(), text);
  };
  fill("{picked}", picked);
  fill("{placed}", placed);
  return sql;
}

/// Of each agent $1, $2 rows for $3 dispatches. The time is read once, not for each row: an agent
/// may have many that are not due yet. An agent's rows do not overlap, so that they are used up one
/// after the other.
const std::string& claim_of_each() {
  static const auto sql = claim_statement(
      "SELECT w.ctid FROM unnest($1::int[], $2::bigint[]) AS c(no, rows), LATERAL (SELECT ctid "
      "FROM dispatch_waiting WHERE agent_no = c.no AND not_before <= (SELECT now_ms()) ORDER BY "
      "priority DESC, created_at, first_id LIMIT c.rows FOR UPDATE SKIP LOCKED) w",
      "SELECT t.*, greatest(0, l.most - coalesce(sum(t.size) OVER (PARTITION BY t.agent_no ORDER "
      "BY t.priority DESC, t.created_at, t.first_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "
      "PRECEDING), 0))::int AS room FROM taken t JOIN unnest($1::int[], $3::int[]) AS l(no, most) "
      "ON l.no = t.agent_no");
  return sql;
}

/// $2 rows of any of the agents $1 for $3 dispatches. Rows of different agents overlap: the first
/// dispatches of all are in as many of the first rows.
const std::string& claim_of_any() {
  static const auto sql = claim_statement(
      "SELECT ctid FROM dispatch_waiting WHERE agent_no = ANY($1::int[]) AND not_before <= "
      "(SELECT now_ms()) ORDER BY priority DESC, created_at, first_id LIMIT ($2::bigint[])[1] FOR "
      "UPDATE SKIP LOCKED",
      "SELECT t.*, coalesce(r.room, 0)::int AS room FROM taken t LEFT JOIN (SELECT first_id, "
      "count(*) AS room FROM (SELECT t.first_id, row_number() OVER (ORDER BY t.priority DESC, "
      "t.created_at, m.id) AS place FROM taken t, unnest(t.members) AS m(id)) ranked WHERE place "
      "<= ($3::int[])[1] GROUP BY first_id) r ON r.first_id = t.first_id");
  return sql;
}

/// Columns of a claim's answer.
enum claim_column : int {
  rows_of_agent,
  claim_number,
  was_attempted,
  agent_number,
  priority,
  created_at,
  not_before,
  max_attempts,
  metadata,
  members,
  bodies,
  clock_time
};

/// Adds the dispatches `ids` of one row of a claim's answer to `to`. Those whose bodies do not
/// stand in it have no cycle yet.
void add_claimed(const answer& a, int r, const agent_entry& agent, std::vector<std::string> ids,
                 std::vector<stored>& to) {
  const auto texts = members_of(a.text(r, bodies));
  const bool whole = !a.is_null(r, bodies);
  const bool attempted = a.text(r, was_attempted) == "t";
  const auto place = static_cast<int>(a.integer(r, priority));
  const auto created = a.time(r, created_at);
  const auto due = a.time(r, not_before);
  const auto most = static_cast<int>(a.integer(r, max_attempts));
  const std::string extra{a.is_null(r, metadata) ? "{}" : a.text(r, metadata)};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto& s = to.emplace_back();
    auto& d = s.row.d;
    s.attempted = attempted;
    s.agent = &agent;
    d.dispatch_id = std::move(ids[i]);
    d.kernel_id = agent.kernel_id;
    d.agent_id = agent.agent_id;
    d.priority = place;
    d.created_at = created;
    d.not_before = due;
    if (!whole)
      continue;
    d.max_attempts = most;
    d.metadata_json = extra;
    const std::string_view body = texts.at(i);
    const auto end = std::min(body.find(body_separator), body.size());
    d.cycle_id = body.substr(0, end);
    d.prompt = body.substr(std::min(end + 1, body.size()));
  }
}

bool comes_first(const claimed_dispatch& a, const claimed_dispatch& b) {
  return std::tuple{-a.row.priority, a.row.created_at, std::string_view{a.row.dispatch_id}} <
         std::tuple{-b.row.priority, b.row.created_at, std::string_view{b.row.dispatch_id}};
}

} // namespace

operations::asked_claim& operations::asked_for(const std::vector<asked_claim*>& asked,
                                               const stored& s) {
  return **std::find_if(asked.begin(), asked.end(), [&](const asked_claim* c) {
    return c->agent_no == 0 || c->agent_no == s.agent->no;
  });
}

std::vector<stored*> operations::load_inserted(std::vector<stored*> rows) {
  if (rows.empty() || inserted_.empty())
    return rows;
  std::unordered_map<std::string_view, const dispatch*> known;
  for (const auto& s : inserted_)
    known.emplace(s.row.d.dispatch_id, &s.row.d);
  std::erase_if(rows, [&](stored* s) {
    const auto it = known.find(s->row.d.dispatch_id);
    if (it == known.end())
      return false;
    auto& d = s->row.d;
    d.cycle_id = it->second->cycle_id;
    d.max_attempts = it->second->max_attempts;
    // As they would be read again.
    d.metadata_json = sanitize_utf8(it->second->metadata_json);
    d.prompt = sanitize_utf8(it->second->prompt);
    return true;
  });
  return rows;
}

void operations::load_requests(std::vector<stored*> rows) {
  rows = load_inserted(std::move(rows));
  if (rows.empty())
    return;
  array ids;
  const auto by_id = index_by_id(rows, ids);
  static const auto sql = "SELECT dispatch_id, " + names_of(queue::columns_of_request) +
                          ", prompt FROM dispatch_requests WHERE dispatch_id = ANY($1::text[])";
  const auto a = db_.run(sql, parameters{}.add(ids));
  for (int r = 0; r < a.rows(); ++r) {
    auto& row = by_id.at(a.text(r, 0))->row;
    read_columns(a, r, 1, queue::columns_of_request, row);
    row.d.prompt = text_of(a, r, 1 + queue::request_column_count);
  }
}

void operations::take(const std::string& sql, const claim& like, const array& agents,
                      std::vector<asked_claim*>& asked) {
  array rows;
  array most;
  for (const auto* c : asked) {
    rows.add(static_cast<std::int64_t>(c->rows));
    most.add(static_cast<std::int64_t>(c->limit - c->out.size()));
  }
  const auto values =
      parameters{}.add(agents).add(rows).add(most).add(like.node_id).add(like.lease.count());
  const auto a = std::exchange(commits_with_claim_, false) ? db_.run_and_commit(sql, values)
                                                           : db_.run(sql, values);
  for (auto* c : asked) {
    c->before = c->out.size();
    c->taken = 0;
  }
  if (a.rows() > 0)
    now_ = a.time(0, clock_time);
  std::vector<std::vector<std::string>> ids;
  std::size_t count = 0;
  for (int r = 0; r < a.rows(); ++r)
    count += ids.emplace_back(members_of(a.text(r, members))).size();
  std::vector<stored> found;
  found.reserve(count);
  for (int r = 0; r < a.rows(); ++r) {
    auto& row_ids = ids[static_cast<std::size_t>(r)];
    const auto claim_no = a.integer(r, claim_number);
    for (const auto& id : row_ids)
      names_.claimed(id, claim_no);
    add_claimed(a, r, names_.of(a.integer(r, agent_number)), std::move(row_ids), found);
    auto& of = asked_for(asked, found.back());
    of.taken = static_cast<std::size_t>(a.integer(r, rows_of_agent));
    of.out.reserve(of.out.size() + std::min(count, of.limit));
  }
  std::vector<stored*> attempted;
  std::vector<stored*> lacking;
  for (auto& s : found) {
    if (s.attempted)
      attempted.push_back(&s);
    if (s.row.d.cycle_id.empty())
      lacking.push_back(&s);
  }
  load_requests(std::move(lacking));
  load_results(attempted);
  // Without a request, which a hand must have deleted, there is nothing to run.
  std::erase_if(found, [](const stored& s) { return s.row.d.cycle_id.empty(); });
  for (auto& s : found) {
    auto& of = asked_for(asked, s);
    queue::claim_row(s.row, like.node_id, like.lease, now());
    of.out.push_back({std::move(s.row.d), like.lease});
  }
  // Who found as many rows as it asked for, but not enough dispatches in them, asks again.
  std::erase_if(asked, [](asked_claim* c) {
    if (c->taken < c->rows || c->out.size() >= c->limit)
      return true;
    const auto got = std::max<std::size_t>(c->out.size() - c->before, 1);
    c->rows = (c->limit - c->out.size()) * c->taken / got + 1;
    return false;
  });
}

void operations::claim_each(const claim& like, std::vector<asked_claim*> asked) {
  while (!asked.empty()) {
    array agents;
    for (const auto* c : asked)
      agents.add(c->agent_no);
    take(claim_of_each(), like, agents, asked);
  }
}

void operations::claim_any(const claim& op, asked_claim& asked) {
  array agents;
  for (const auto* agent : names_.named(op.kernel_id, {}))
    agents.add(agent->no);
  asked.rows = op.limit;
  std::vector<asked_claim*> one{&asked};
  if (!agents.empty())
    take(claim_of_any(), op, agents, one);
}

void operations::commit_with_claim() {
  write_totals();
  write_counts();
  commits_with_claim_ = true;
}

std::vector<any_reply> operations::run(const std::vector<const claim*>& ops) {
  // How many dispatches a row stands for is not known: full rows first, then as many as the rows
  // so far let expect.
  std::vector<asked_claim> all(ops.size());
  std::vector<asked_claim*> together;
  const claim* like = nullptr;
  const auto flush = [&] {
    if (like != nullptr && !together.empty())
      claim_each(*like, std::exchange(together, {}));
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto& op = *ops[i];
    auto& asked = all[i];
    asked.limit = op.limit;
    // One more where a first row is likely to be cut: that costs less than a second question.
    asked.rows = op.limit / most_members + (op.limit < most_members ? 1 : 2);
    const auto* agent = op.agent_id.empty() ? nullptr : names_.find(op.kernel_id, op.agent_id);
    if (op.limit == 0 || (agent == nullptr && !op.agent_id.empty()))
      continue;
    if (agent == nullptr) {
      flush();
      claim_any(op, asked);
      continue;
    }
    asked.agent_no = agent->no;
    const bool fits = like != nullptr && like->node_id == op.node_id && like->lease == op.lease &&
                      std::none_of(together.begin(), together.end(),
                                   [&](const asked_claim* c) { return c->agent_no == agent->no; });
    if (!fits)
      flush();
    like = &op;
    together.push_back(&asked);
  }
  flush();
  std::vector<any_reply> replies;
  for (auto& asked : all) {
    // Rows are taken in this order, but need not be answered in it.
    if (!std::is_sorted(asked.out.begin(), asked.out.end(), comes_first))
      std::sort(asked.out.begin(), asked.out.end(), comes_first);
    replies.emplace_back(std::move(asked.out));
  }
  return replies;
}

namespace {

/// The last row, without an agent, is the time until the next delayed one.
any_reply read_due(const answer& a, directory& names) {
  due_agents::reply reply;
  for (int r = 0; r < a.rows(); ++r) {
    if (a.is_null(r, 0)) {
      reply.next_in = milliseconds{a.integer(r, 2)};
      continue;
    }
    const auto& agent = names.of(a.integer(r, 0));
    reply.due.push_back({agent.kernel_id, agent.agent_id, static_cast<int>(a.integer(r, 1)),
                         static_cast<std::uint64_t>(a.integer(r, 2))});
  }
  std::sort(reply.due.begin(), reply.due.end(), [](const auto& x, const auto& y) {
    return std::tie(x.kernel_id, x.agent_id) < std::tie(y.kernel_id, y.agent_id);
  });
  return reply;
}

} // namespace

question operations::ask(const due_agents&) {
  constexpr std::size_t half_full = most_members / 2;
  // Steps from one agent to the next along dispatch_waiting_order, and reads no more of each than
  // the count needs: a few rows when they stand for many dispatches. The last row, without an
  // agent, is the time until the next delayed one.
  static const std::string sql =
      "WITH RECURSIVE a(no) AS ((SELECT agent_no FROM dispatch_waiting ORDER BY agent_no LIMIT 1) "
      "UNION ALL SELECT n.agent_no FROM a, LATERAL (SELECT agent_no FROM dispatch_waiting WHERE "
      "agent_no > a.no ORDER BY agent_no LIMIT 1) n) SELECT a.no, c.best, least($1::bigint, CASE "
      "WHEN c.n >= $1::bigint OR c.rows < $2::bigint THEN c.n ELSE (SELECT sum(size) FROM (SELECT "
      "size FROM dispatch_waiting WHERE agent_no = a.no AND not_before <= (SELECT now_ms()) LIMIT "
      "$1::bigint) w) END) FROM a, LATERAL (SELECT sum(size) AS n, max(priority) AS best, count(*) "
      "AS rows FROM (SELECT size, priority FROM dispatch_waiting WHERE agent_no = a.no AND "
      "not_before <= (SELECT now_ms()) ORDER BY priority DESC LIMIT $2::bigint) due) c WHERE "
      "c.rows > 0 UNION ALL (SELECT NULL, NULL, not_before - now_ms() FROM dispatch_waiting WHERE "
      "not_before "
      "> created_at AND not_before > now_ms() ORDER BY not_before LIMIT 1)";
  return {{sql, parameters{}
                    .add(static_cast<std::int64_t>(queue::due_count_cap))
                    .add(static_cast<std::int64_t>(queue::due_count_cap / half_full + 1))},
          [this](const answer& a) { return read_due(a, names_); }};
}

} // namespace boyd::adapters::postgres
