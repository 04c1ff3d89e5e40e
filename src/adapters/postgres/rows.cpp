#include "boyd/queue/usage_json.hpp"
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

/// The columns of dispatch_results that a row has whose dispatch ended at its first attempt, and
/// those that others have, too.
#define FIRST_RESULT                                                                               \
  "dispatch_id,kernel_no,status,attempt,fence,settled_fence,last_owner,started_at,finished_at,"    \
  "execution,claim,verification,failure_class,exit_code,output_cut,session_id,summary,error,"      \
  "usage,output"
#define LATER_RESULT FIRST_RESULT ",rescues,not_before,attempts"

constexpr std::string_view nothing = "none";

/// Adds FIRST_RESULT of a row to `to`, value by value: a row of a COPY, or a list of arrays.
template <class Add>
void add_first(const stored& s, Add add) {
  const auto& d = s.row.d;
  const auto& o = d.outcome;
  add().add(d.dispatch_id);
  add().add(s.agent->kernel_no);
  add().add(name_of(d.status));
  add().add(d.attempt);
  add().add(d.fence);
  add().add(s.row.settled_fence);
  add().add(s.row.last_owner);
  add().add(d.started_at);
  add().add(d.finished_at);
  add().add_unless(nothing, name_of(o.execution));
  add().add_unless(nothing, name_of(o.claim));
  add().add_unless(nothing, name_of(o.verification));
  add().add_unless(nothing, name_of(o.failure));
  add().add(o.exit_code);
  add().add(static_cast<std::int64_t>(o.output_cut));
  add().add_unless({}, o.session_id);
  add().add_unless({}, o.summary);
  add().add_unless({}, o.error);
  add().add_unless({}, queue::usage_json(o.usage));
  add().add_unless({}, o.output);
}

template <class Add>
void add_later(const stored& s, Add add) {
  add_first(s, add);
  add().add(s.row.d.rescues);
  add().add(to_unix_ms(s.row.d.not_before));
  add().add_unless("[]", s.row.d.attempts_json);
}

/// From the columns of s on, beginning at `c`; NULLs leave what a row without a result has.
void read_result(const answer& a, int r, int c, queue::queue_row& row) {
  auto& d = row.d;
  auto& o = d.outcome;
  const auto status = dispatch_status_from(a.text(r, c));
  d.status =
      queue::read_word(row, "status", a.text(r, c), dispatch_status_from, dispatch_status::failed);
  d.attempt = static_cast<int>(a.integer(r, c + 1));
  d.rescues = static_cast<int>(a.integer(r, c + 2));
  d.fence = a.integer(r, c + 3);
  row.settled_fence = a.integer(r, c + 4);
  if (!a.is_null(r, c + 5))
    d.not_before = a.time(r, c + 5);
  row.last_owner = text_of(a, r, c + 6);
  d.started_at = a.optional_time(r, c + 7);
  d.finished_at = a.optional_time(r, c + 8);
  using queue::read_word;
  o.execution = read_word(row, "execution", a.text(r, c + 9), execution_verdict_from, o.execution);
  o.claim = read_word(row, "claim", a.text(r, c + 10), claim_verdict_from, o.claim);
  o.verification =
      read_word(row, "verification", a.text(r, c + 11), verification_verdict_from, o.verification);
  o.failure = read_word(row, "failure_class", a.text(r, c + 12), failure_class_from, o.failure);
  o.exit_code = static_cast<int>(a.integer(r, c + 13));
  o.output_cut = static_cast<std::uint64_t>(a.integer(r, c + 14));
  o.session_id = text_of(a, r, c + 15);
  o.summary = text_of(a, r, c + 16);
  o.error = status ? text_of(a, r, c + 17) : queue::unknown_status(a.text(r, c));
  o.usage = queue::usage_from(text_of(a, r, c + 18));
  if (!a.is_null(r, c + 19))
    d.attempts_json = text_of(a, r, c + 19);
}

#define RESULT_COLUMNS                                                                             \
  "s.status, s.attempt, s.rescues, s.fence, s.settled_fence, s.not_before, s.last_owner, "         \
  "s.started_at, s.finished_at, s.execution, s.claim, s.verification, s.failure_class, "           \
  "s.exit_code, s.output_cut, s.session_id, s.summary, s.error, s.usage, s.attempts"

} // namespace

std::string_view row_columns() noexcept {
  return "d.dispatch_id, d.agent_no, d.cycle_id, d.priority, d.metadata, d.max_attempts, "
         "d.created_at, d.not_before, " RESULT_COLUMNS
         ", r.owner, r.lease_expires_at, r.started_at, r.fence, r.attempt";
}

stored read_row(const answer& a, int r, directory& names) {
  stored s;
  auto& d = s.row.d;
  s.agent = &names.of(a.integer(r, 1));
  d.dispatch_id = text_of(a, r, 0);
  d.kernel_id = s.agent->kernel_id;
  d.agent_id = s.agent->agent_id;
  d.cycle_id = text_of(a, r, 2);
  d.priority = static_cast<int>(a.integer(r, 3));
  if (!a.is_null(r, 4))
    d.metadata_json = text_of(a, r, 4);
  d.max_attempts = static_cast<int>(a.integer(r, 5));
  d.created_at = a.time(r, 6);
  d.not_before = a.time(r, 7);
  constexpr int result_column = 8;
  s.attempted = !a.is_null(r, result_column);
  if (s.attempted)
    read_result(a, r, result_column, s.row);
  constexpr int claim_column = 28;
  if (a.is_null(r, claim_column))
    return s;
  d.status = dispatch_status::running;
  d.lease_owner = text_of(a, r, claim_column);
  s.row.last_owner = d.lease_owner;
  d.lease_expires_at = a.time(r, claim_column + 1);
  d.started_at = a.time(r, claim_column + 2);
  d.fence = a.integer(r, claim_column + 3);
  d.attempt = static_cast<int>(a.integer(r, claim_column + 4));
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
  const auto a = db_.run("SELECT " RESULT_COLUMNS ", s.output, s.dispatch_id FROM "
                         "dispatch_results s WHERE s.dispatch_id = ANY($1::text[])",
                         parameters{}.add(ids));
  constexpr int output_column = 20;
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
      add_later(*s, [&]() -> copy_rows& { return fresh; });
      fresh.end_row();
    }
    count(*s, d.status, 1);
    if (d.status == dispatch_status::pending)
      pending.push_back(s);
  }
  db_.copy("dispatch_results", FIRST_RESULT, first);
  db_.copy("dispatch_results", LATER_RESULT, fresh);
  update_results(older);
  put_in(pending);
}

void operations::update_results(const std::vector<const stored*>& rows) {
  if (rows.empty())
    return;
  constexpr std::size_t columns = 23;
  std::array<array, columns> values;
  for (const auto* s : rows) {
    std::size_t next = 0;
    add_later(*s, [&]() -> array& { return values.at(next++); });
  }
  parameters p;
  for (const auto& v : values)
    p.add(v);
  db_.later(
      "UPDATE dispatch_results t SET status=i.c3, attempt=i.c4, fence=i.c5, "
      "settled_fence=i.c6, last_owner=i.c7, started_at=i.c8, finished_at=i.c9, "
      "execution=i.c10, claim=i.c11, verification=i.c12, failure_class=i.c13, "
      "exit_code=i.c14, output_cut=i.c15, session_id=i.c16, summary=i.c17, error=i.c18, "
      "usage=i.c19, output=i.c20, rescues=i.c21, not_before=i.c22, attempts=i.c23::jsonb FROM "
      "unnest($1::text[], $2::int[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], "
      "$7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[], "
      "$13::text[], $14::int[], $15::bigint[], $16::text[], $17::text[], $18::text[], "
      "$19::text[], $20::text[], $21::int[], $22::bigint[], $23::text[]) AS i(c1, c2, c3, c4, "
      "c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, "
      "c23) WHERE t.dispatch_id = i.c1",
      p);
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
