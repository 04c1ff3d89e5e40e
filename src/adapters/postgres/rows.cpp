#include "operations.hpp"

#include <algorithm>
#include <array>

namespace boyd::adapters::postgres {

std::string text_of(const answer& a, int row, int column) {
  return std::string{a.text(row, column)};
}

std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

namespace {

constexpr int request_at = 2;
constexpr int result_at = request_at + queue::request_column_count;
constexpr int claim_at = result_at + queue::result_column_count;

/// Calls `f` with each column of dispatch_results that every row has, or with those of dispatches
/// that were attempted more than once.
template <class F>
void for_each_result(bool later, F f) {
  queue::for_each_column(queue::columns_of_result, [&](const auto& c) {
    if (c.form.later == later)
      f(c);
  });
}

/// In the order of add_first.
const std::string& first_columns() {
  static const auto names = [] {
    std::string all = "dispatch_id,kernel_no,";
    for_each_result(false, [&](const auto& c) { all += std::string(c.name) + ","; });
    return all + "output";
  }();
  return names;
}

/// In the order of add_all.
const std::string& all_columns() {
  static const auto names = [] {
    auto all = first_columns();
    for_each_result(true, [&](const auto& c) { all += "," + std::string(c.name); });
    return all;
  }();
  return names;
}

/// Adds a row's values, each to what `add` returns: a row of a COPY, or a list of arrays.
template <class Add>
void add_first(const stored& s, Add add) {
  add().add(s.row.d.dispatch_id);
  add().add(s.agent->kernel_no);
  for_each_result(false, [&](const auto& c) { add_value(add(), c, s.row); });
  add_value(add(), queue::output_column, s.row);
}

template <class Add>
void add_all(const stored& s, Add add) {
  add_first(s, add);
  for_each_result(true, [&](const auto& c) { add_value(add(), c, s.row); });
}

/// From the columns of s on, beginning at `c`.
void read_result(const answer& a, int r, int c, queue::queue_row& row) {
  read_columns(a, r, c, queue::columns_of_result, row);
  queue::read_status(a.text(r, c), row);
}

std::string result_names() {
  return queue::listed(queue::columns_of_result,
                       [](const auto& c) { return std::string("s.") + c.name; });
}

} // namespace

const std::string& row_columns() {
  static const auto all = "d.dispatch_id, d.agent_no, " +
                          queue::listed(queue::columns_of_request,
                                        [](const auto& c) { return std::string("d.") + c.name; }) +
                          ", " + result_names() +
                          ", r.owner, r.lease_expires_at, r.started_at, r.fence, r.attempt";
  return all;
}

stored read_row(const answer& a, int r, directory& names) {
  stored s;
  auto& d = s.row.d;
  s.agent = &names.of(a.integer(r, 1));
  d.dispatch_id = text_of(a, r, 0);
  d.kernel_id = s.agent->kernel_id;
  d.agent_id = s.agent->agent_id;
  read_columns(a, r, request_at, queue::columns_of_request, s.row);
  s.attempted = !a.is_null(r, result_at);
  if (s.attempted)
    read_result(a, r, result_at, s.row);
  if (a.is_null(r, claim_at))
    return s;
  d.status = dispatch_status::running;
  d.lease_owner = text_of(a, r, claim_at);
  s.row.last_owner = d.lease_owner;
  d.lease_expires_at = a.time(r, claim_at + 1);
  d.started_at = a.time(r, claim_at + 2);
  d.fence = a.integer(r, claim_at + 3);
  d.attempt = static_cast<int>(a.integer(r, claim_at + 4));
  d.outcome = run_outcome{};
  return s;
}

utc_time operations::now() {
  if (!now_)
    now_ = db_.run("SELECT now_ms()").time(0, 0);
  return *now_;
}

std::unordered_map<std::string_view, stored*> index_by_id(const std::vector<stored*>& rows,
                                                          array& ids) {
  std::unordered_map<std::string_view, stored*> by_id;
  by_id.reserve(rows.size());
  for (auto* s : rows) {
    ids.add(s->row.d.dispatch_id);
    by_id[s->row.d.dispatch_id] = s;
  }
  return by_id;
}

void operations::load_results(const std::vector<stored*>& rows) {
  if (rows.empty())
    return;
  array ids;
  const auto by_id = index_by_id(rows, ids);
  static const auto sql = "SELECT " + result_names() +
                          ", s.output, s.dispatch_id FROM dispatch_results s WHERE s.dispatch_id = "
                          "ANY($1::text[])";
  const auto a = db_.run(sql, parameters{}.add(ids));
  constexpr int output_column = queue::result_column_count;
  for (int r = 0; r < a.rows(); ++r) {
    auto& s = *by_id.at(a.text(r, output_column + 1));
    s.attempted = true;
    if (s.row.d.status != dispatch_status::running) {
      read_result(a, r, 0, s.row);
      s.row.d.outcome.output = text_of(a, r, output_column);
      continue;
    }
    queue::queue_row before;
    before.d.not_before = s.row.d.not_before;
    read_result(a, r, 0, before);
    s.row.settled_fence = before.settled_fence;
    s.row.d.rescues = before.d.rescues;
    s.row.d.not_before = before.d.not_before;
    s.row.d.attempts_json = std::move(before.d.attempts_json);
  }
}

locked_claims operations::read_claims(std::string_view condition, const parameters& p) {
  const auto a = db_.run("SELECT r.claim_no, r.agent_no, r.owner, r.lease_expires_at, "
                         "r.started_at, r.fence, r.attempt, r.attempted, r.members, "
                         "now_ms() FROM "
                         "dispatch_running r WHERE " +
                             std::string{condition},
                         p);
  constexpr int clock_column = 9;
  if (a.rows() > 0)
    now_ = a.time(0, clock_column);
  locked_claims claims;
  for (int r = 0; r < a.rows(); ++r) {
    locked_claim c{a.integer(r, 0),
                   a.integer(r, 1),
                   text_of(a, r, 2),
                   a.time(r, 3),
                   a.time(r, 4),
                   a.integer(r, 5),
                   static_cast<int>(a.integer(r, 6)),
                   a.text(r, 7) == "t",
                   members_of(a.text(r, 8)),
                   {}};
    c.left.resize(c.members.size());
    for (std::size_t m = 0; m < c.members.size(); ++m)
      claims.places[c.members[m]] = {claims.all.size(), m};
    claims.all.push_back(std::move(c));
  }
  return claims;
}

locked_claims operations::lock_claims(const std::vector<const std::string*>& ids) {
  // Always in the order of the claims, so that two nodes cannot wait for each other.
  locked_claims found;
  std::set<std::int64_t> hints;
  for (const auto* id : ids)
    if (const auto no = names_.claim_of(*id))
      hints.insert(*no);
  if (!hints.empty()) {
    array numbers;
    for (const auto no : hints)
      numbers.add(no);
    found = read_claims("r.claim_no = ANY($1::bigint[]) ORDER BY r.claim_no FOR UPDATE",
                        parameters{}.add(numbers));
  }
  array others;
  for (const auto* id : ids)
    if (!found.places.contains(*id))
      others.add(*id);
  if (others.empty())
    return found;
  auto more = read_claims("r.members && $1::text[] ORDER BY r.claim_no FOR UPDATE",
                          parameters{}.add(others));
  for (auto& c : more.all) {
    for (std::size_t m = 0; m < c.members.size(); ++m)
      found.places[c.members[m]] = {found.all.size(), m};
    found.all.push_back(std::move(c));
  }
  return found;
}

stored operations::running(const locked_claim& claim, const std::string& dispatch_id) {
  stored s;
  auto& d = s.row.d;
  s.agent = &names_.of(claim.agent_no);
  s.attempted = claim.attempted;
  d.dispatch_id = dispatch_id;
  d.kernel_id = s.agent->kernel_id;
  d.agent_id = s.agent->agent_id;
  d.status = dispatch_status::running;
  d.lease_owner = claim.owner;
  s.row.last_owner = claim.owner;
  d.lease_expires_at = claim.lease_expires_at;
  d.started_at = claim.started_at;
  d.fence = claim.fence;
  d.attempt = claim.attempt;
  return s;
}

void operations::close_claims(const locked_claims& claims) {
  array ended;
  array kept;
  array rest;
  for (const auto& c : claims.all) {
    const auto gone = std::count(c.left.begin(), c.left.end(), true);
    if (gone == 0)
      continue;
    array members;
    for (std::size_t m = 0; m < c.members.size(); ++m) {
      if (c.left[m])
        names_.ended(c.members[m]);
      else
        members.add(c.members[m]);
    }
    if (members.empty()) {
      ended.add(c.no);
    } else {
      kept.add(c.no);
      rest.add(members.literal());
    }
  }
  if (!ended.empty())
    write_counts(ended);
  if (!kept.empty())
    db_.later("UPDATE dispatch_running r SET members = i.m::text[] FROM unnest($1::bigint[], "
              "$2::text[]) AS i(no, m) WHERE r.claim_no = i.no",
              parameters{}.add(kept).add(rest));
}

void operations::count(const stored& s, dispatch_status status, std::int64_t by) {
  if (is_final(status))
    counts_[{s.agent->kernel_no, std::string{name_of(status)}}] += by;
}

void operations::write_counts(const array& ended) {
  static const std::string remove =
      "DELETE FROM dispatch_running WHERE claim_no = ANY($1::bigint[])";
  static const std::string add =
      "INSERT INTO dispatch_counts AS c(kernel_no, status, slot, n) SELECT k, s, "
      "pg_backend_pid() % 64, n FROM unnest($2::int[], $3::text[], $4::bigint[]) AS i(k, s, n) ON "
      "CONFLICT (kernel_no, status, slot) DO UPDATE SET n = c.n + excluded.n";
  static const auto both = "WITH ended AS (" + remove + ") " + add;
  array kernels;
  array statuses;
  array changes;
  for (const auto& [key, change] : counts_)
    if (change != 0) {
      kernels.add(key.first);
      statuses.add(key.second);
      changes.add(change);
    }
  counts_.clear();
  if (!kernels.empty())
    db_.later(both, parameters{}.add(ended).add(kernels).add(statuses).add(changes));
  else if (!ended.empty())
    db_.later(remove, parameters{}.add(ended));
}

void operations::write_back(const std::vector<const stored*>& rows) {
  copy_rows first;
  copy_rows fresh;
  std::vector<const stored*> older;
  std::vector<const stored*> pending;
  for (const auto* s : rows) {
    const auto& d = s->row.d;
    if (s->attempted) {
      older.push_back(s);
    } else if (is_final(d.status) && d.rescues == 0 && d.attempts_json == "[]") {
      add_first(*s, [&]() -> copy_rows& { return first; });
      first.end_row();
    } else {
      add_all(*s, [&]() -> copy_rows& { return fresh; });
      fresh.end_row();
    }
    count(*s, d.status, 1);
    if (d.status == dispatch_status::pending)
      pending.push_back(s);
  }
  db_.copy("dispatch_results", first_columns(), first);
  db_.copy("dispatch_results", all_columns(), fresh);
  update_results(older);
  put_in(pending);
}

namespace {

/// Its parameters are arrays of the columns that add_all adds.
std::string update_of_results() {
  const auto set = [](const auto& c) {
    return std::string(c.name) + "=i." + c.name + (c.form.json ? "::jsonb" : "");
  };
  std::string types = "$1::text[], $2::int[]";
  int n = 2;
  const auto add_type = [&](const auto& c) {
    types += ", $" + std::to_string(++n) + "::" + type_of(c) + "[]";
  };
  for_each_result(false, add_type);
  add_type(queue::output_column);
  for_each_result(true, add_type);
  return "UPDATE dispatch_results t SET " + queue::listed(queue::columns_of_result, set) + "," +
         set(queue::output_column) + " FROM unnest(" + types + ") AS i(" + all_columns() +
         ") WHERE t.dispatch_id = i.dispatch_id";
}

} // namespace

void operations::update_results(const std::vector<const stored*>& rows) {
  if (rows.empty())
    return;
  constexpr std::size_t columns = 2 + queue::result_column_count + 1;
  std::array<array, columns> values;
  for (const auto* s : rows) {
    std::size_t next = 0;
    add_all(*s, [&]() -> array& { return values.at(next++); });
  }
  parameters p;
  for (const auto& v : values)
    p.add(v);
  static const auto sql = update_of_results();
  db_.later(sql, p);
}

void operations::put_in(const std::vector<const stored*>& rows) {
  if (rows.empty())
    return;
  array ids;
  array times;
  for (const auto* s : rows) {
    ids.add(s->row.d.dispatch_id);
    times.add(to_unix_ms(s->row.d.not_before));
    woken_.insert(s->row.d.kernel_id);
  }
  db_.later("INSERT INTO dispatch_waiting(agent_no, priority, created_at, first_id, not_before, "
            "size, attempted, members) SELECT d.agent_no, d.priority, d.created_at, d.dispatch_id, "
            "i.t, 1, true, ARRAY[d.dispatch_id] FROM unnest($1::text[], $2::bigint[]) AS i(id, t) "
            "JOIN dispatch_requests d ON d.dispatch_id = i.id",
            parameters{}.add(ids).add(times));
}

} // namespace boyd::adapters::postgres
