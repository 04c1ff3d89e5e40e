#include "operations.hpp"

#include <algorithm>

namespace boyd::adapters::postgres {

std::string_view row_columns() noexcept {
  return "d.dispatch_id, d.kernel_id, d.cycle_id, d.agent_id, d.priority, d.status, d.metadata, "
         "d.attempt, d.max_attempts, d.rescues, d.fence, d.settled_fence, d.not_before, "
         "d.lease_owner, d.last_owner, d.lease_expires_at, d.created_at, d.started_at, "
         "d.finished_at, d.execution, d.claim, d.verification, d.failure_class, d.exit_code, "
         "d.output_cut, d.session_id, d.summary, d.error, d.usage, d.attempts";
}

queue::queue_row read_row(const answer& a, int r) {
  queue::queue_row row;
  auto& d = row.d;
  d.dispatch_id = std::string{a.text(r, 0)};
  d.kernel_id = std::string{a.text(r, 1)};
  d.cycle_id = std::string{a.text(r, 2)};
  d.agent_id = std::string{a.text(r, 3)};
  d.priority = static_cast<int>(a.integer(r, 4));
  d.status = dispatch_status_from(a.text(r, 5)).value_or(dispatch_status::failed);
  d.metadata_json = std::string{a.text(r, 6)};
  d.attempt = static_cast<int>(a.integer(r, 7));
  d.max_attempts = static_cast<int>(a.integer(r, 8));
  d.rescues = static_cast<int>(a.integer(r, 9));
  d.fence = a.integer(r, 10);
  row.settled_fence = a.integer(r, 11);
  d.not_before = a.time(r, 12);
  d.lease_owner = std::string{a.text(r, 13)};
  row.last_owner = std::string{a.text(r, 14)};
  d.lease_expires_at = a.optional_time(r, 15);
  d.created_at = a.time(r, 16);
  d.started_at = a.optional_time(r, 17);
  d.finished_at = a.optional_time(r, 18);
  d.outcome.execution = execution_verdict_from(a.text(r, 19)).value_or(execution_verdict::none);
  d.outcome.claim = claim_verdict_from(a.text(r, 20)).value_or(claim_verdict::none);
  d.outcome.verification =
      verification_verdict_from(a.text(r, 21)).value_or(verification_verdict::none);
  d.outcome.failure = failure_class_from(a.text(r, 22)).value_or(failure_class::none);
  d.outcome.exit_code = static_cast<int>(a.integer(r, 23));
  d.outcome.output_cut = static_cast<std::uint64_t>(a.integer(r, 24));
  d.outcome.session_id = std::string{a.text(r, 25)};
  d.outcome.summary = std::string{a.text(r, 26)};
  d.outcome.error = std::string{a.text(r, 27)};
  d.outcome.usage_json = std::string{a.text(r, 28)};
  d.attempts_json = std::string{a.text(r, 29)};
  return row;
}

operations::locked operations::lock_where(std::string_view condition, const parameters& p) {
  const auto a = db_.run("SELECT " + std::string{row_columns()} +
                             ", now_ms() FROM dispatches d WHERE " + std::string{condition},
                         p);
  locked all;
  for (int r = 0; r < a.rows(); ++r)
    all.rows.push_back(read_row(a, r));
  if (a.rows() > 0)
    all.now = a.time(0, row_column_count);
  return all;
}

operations::locked operations::lock(const array& ids) {
  // Always in the order of the ids, so that two nodes cannot wait for each other.
  return lock_where("d.dispatch_id = ANY($1::text[]) ORDER BY d.dispatch_id FOR UPDATE",
                    parameters{}.add(ids));
}

queue::queue_row* operations::find(locked& all, const std::string& id) {
  const auto it = std::lower_bound(
      all.rows.begin(), all.rows.end(), id,
      [](const queue::queue_row& row, const std::string& key) { return row.d.dispatch_id < key; });
  return it != all.rows.end() && it->d.dispatch_id == id ? &*it : nullptr;
}

void operations::save(const std::vector<const queue::queue_row*>& rows) {
  if (rows.empty())
    return;
  constexpr std::size_t columns = 23;
  std::vector<array> c(columns);
  for (const auto* row : rows) {
    const auto& d = row->d;
    const auto& o = d.outcome;
    c[0].add(d.dispatch_id);
    c[1].add(name_of(d.status));
    c[2].add(d.attempt);
    c[3].add(d.rescues);
    c[4].add(d.fence);
    c[5].add(row->settled_fence);
    c[6].add(to_unix_ms(d.not_before));
    c[7].add(d.lease_owner);
    c[8].add(row->last_owner);
    c[9].add(d.lease_expires_at);
    c[10].add(d.started_at);
    c[11].add(d.finished_at);
    c[12].add(name_of(o.execution));
    c[13].add(name_of(o.claim));
    c[14].add(name_of(o.verification));
    c[15].add(name_of(o.failure));
    c[16].add(o.exit_code);
    c[17].add(static_cast<std::int64_t>(o.output_cut));
    c[18].add(o.session_id);
    c[19].add(o.summary);
    c[20].add(o.error);
    c[21].add(o.usage_json);
    c[22].add(d.attempts_json);
    if (d.status == dispatch_status::pending)
      woken_.insert(d.kernel_id);
  }
  parameters p;
  for (const auto& column : c)
    p.add(column);
  db_.run("UPDATE dispatches d SET status=i.c2, attempt=i.c3, rescues=i.c4, fence=i.c5, "
          "settled_fence=i.c6, not_before=i.c7, lease_owner=i.c8, last_owner=i.c9, "
          "lease_expires_at=i.c10, started_at=i.c11, finished_at=i.c12, execution=i.c13, "
          "claim=i.c14, verification=i.c15, failure_class=i.c16, exit_code=i.c17, "
          "output_cut=i.c18, session_id=i.c19, summary=i.c20, error=i.c21, usage=i.c22, "
          "attempts=i.c23::jsonb FROM unnest($1::text[], $2::text[], $3::int[], $4::int[], "
          "$5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], "
          "$11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[], "
          "$17::int[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::text[], "
          "$23::text[]) AS i(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, "
          "c16, c17, c18, c19, c20, c21, c22, c23) WHERE d.dispatch_id = i.c1",
          p);
}

void operations::save_outputs(const std::vector<const queue::queue_row*>& rows) {
  array ids;
  array fences;
  array outputs;
  bool any = false;
  for (const auto* row : rows) {
    if (row->d.outcome.output.empty())
      continue;
    any = true;
    ids.add(row->d.dispatch_id);
    fences.add(row->d.fence);
    outputs.add(row->d.outcome.output);
  }
  if (any)
    db_.run("INSERT INTO dispatch_outputs(dispatch_id, fence, output) SELECT * FROM "
            "unnest($1::text[], $2::bigint[], $3::text[]) ON CONFLICT (dispatch_id) DO UPDATE SET "
            "fence=excluded.fence, output=excluded.output",
            parameters{}.add(ids).add(fences).add(outputs));
}

} // namespace boyd::adapters::postgres
