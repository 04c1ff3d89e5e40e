#include "boyd/queue/usage_json.hpp"
#include "operations.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::adapters::sqlite {

namespace {

#define REQUEST_COLUMNS                                                                            \
  "d.dispatch_id, d.agent_no, d.cycle_id, d.priority, d.max_attempts, d.created_at, "              \
  "d.not_before, d.metadata, d.id"
#define RESULT_COLUMNS                                                                             \
  "s.status, s.attempt, s.rescues, s.fence, s.settled_fence, s.not_before, s.last_owner_no, "      \
  "s.started_at, s.finished_at, s.execution, s.claim, s.verification, s.failure_class, "           \
  "s.exit_code, s.output_cut, s.session_id, s.summary, s.error, s.usage, s.attempts"

constexpr std::size_t result_columns = 23;

/// What its latest ended attempt left of a dispatch.
void read_result(const statement& s, directory& names, queue::queue_row& row) {
  auto& d = row.d;
  const auto status = dispatch_status_from(s.view(14));
  d.status =
      queue::read_word(row, "status", s.view(14), dispatch_status_from, dispatch_status::failed);
  d.attempt = static_cast<int>(s.integer(15));
  d.rescues = static_cast<int>(s.integer(16));
  d.fence = s.integer(17);
  row.settled_fence = s.integer(18);
  if (!s.null(19))
    d.not_before = s.time(19);
  row.last_owner = names.node_id(s.integer(20));
  d.started_at = s.optional_time(21);
  d.finished_at = s.optional_time(22);
  auto& o = d.outcome;
  using queue::read_word;
  o.execution = read_word(row, "execution", s.view(23), execution_verdict_from, o.execution);
  o.claim = read_word(row, "claim", s.view(24), claim_verdict_from, o.claim);
  o.verification =
      read_word(row, "verification", s.view(25), verification_verdict_from, o.verification);
  o.failure = read_word(row, "failure_class", s.view(26), failure_class_from, o.failure);
  o.exit_code = static_cast<int>(s.integer(27));
  o.output_cut = static_cast<std::uint64_t>(s.integer(28));
  o.session_id = s.text(29);
  o.summary = s.text(30);
  o.error = status ? s.text(31) : queue::unknown_status(s.view(14));
  o.usage = queue::usage_from(s.view(32));
  d.attempts_json = s.text(33);
}

/// The attempt under way; what the one before left is hidden by it (queue::claim_row).
void read_lease(const statement& s, directory& names, queue::queue_row& row) {
  auto& d = row.d;
  d.status = dispatch_status::running;
  d.fence = s.integer(9);
  d.attempt = static_cast<int>(s.integer(10));
  d.lease_owner = names.node_id(s.integer(11));
  row.last_owner = d.lease_owner;
  d.lease_expires_at = s.time(12);
  d.started_at = s.time(13);
  d.outcome = run_outcome{};
}

} // namespace

std::string_view row_columns() noexcept {
  return REQUEST_COLUMNS
      ", r.fence, r.attempt, r.owner_no, r.lease_expires_at, r.started_at, " RESULT_COLUMNS;
}

std::string_view request_columns() noexcept {
  return REQUEST_COLUMNS;
}

#undef REQUEST_COLUMNS
#undef RESULT_COLUMNS

read_dispatch read_request(const statement& s, directory& names) {
  read_dispatch out;
  auto& d = out.row.d;
  out.agent = &names.of(s.integer(1));
  d.dispatch_id = s.text(0);
  d.kernel_id = out.agent->kernel_id;
  d.agent_id = out.agent->agent_id;
  d.cycle_id = s.text(2);
  d.priority = static_cast<int>(s.integer(3));
  d.max_attempts = static_cast<int>(s.integer(4));
  d.created_at = s.time(5);
  d.not_before = s.time(6);
  d.metadata_json = s.text(7);
  out.id = s.integer(8);
  return out;
}

read_dispatch read_row(const statement& s, directory& names) {
  auto out = read_request(s, names);
  out.attempted = !s.null(14);
  if (out.attempted)
    read_result(s, names, out.row);
  if (!s.null(9))
    read_lease(s, names, out.row);
  return out;
}

operations::stored operations::load(const std::string& dispatch_id) {
  static const std::string sql = "SELECT " + std::string{row_columns()} +
                                 ", s.output FROM dispatch_requests d" + std::string{row_joins} +
                                 " WHERE d.dispatch_id = ?";
  auto s = db_.fixed(sql.c_str());
  s.bind(dispatch_id);
  if (!s.step())
    return {};
  auto found = read_row(s, names_);
  auto& d = found.row.d;
  if (d.status != dispatch_status::running)
    d.outcome.output = s.text(row_column_count);
  const auto was = d.status;
  const bool delayed = d.not_before > d.created_at;
  return {found.id, found.agent, std::move(found.row), was, delayed};
}

#define RESULT                                                                                     \
  "INTO dispatch_results(id, kernel_no, status, attempt, rescues, fence, settled_fence, "          \
  "not_before, last_owner_no, started_at, finished_at, execution, claim, verification, "           \
  "failure_class, exit_code, output_cut, session_id, summary, error, usage, attempts, output) "    \
  "SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, "   \
  "c19, c20, c21, c22 FROM given_rows"

// Upserts from a SELECT need a WHERE, or ON is read as a join's.
#define INSERT_RANGES                                                                              \
  "INSERT INTO dispatch_ends(kernel_no, finished_at, first_id, last_id) SELECT c0, c1, c2, c3 "    \
  "FROM given_rows WHERE 1 ON CONFLICT DO UPDATE SET last_id = max(last_id, excluded.last_id)"

constexpr std::size_t range_columns = 4;
/// Numbers that a range may hold of other dispatches, between two of its own: what a reader looks
/// at in vain against one row more.
constexpr std::int64_t widest_gap = 8;

void operations::save(const stored& held) {
  const auto& d = held.row.d;
  if (held.was == dispatch_status::pending) {
    take_out(held.id, d, *held.agent);
    names_.waiting(*held.agent, held.was_delayed, -1);
  }
  if (held.was == dispatch_status::running) {
    end_leases(held.id, held.id);
    names_.released(d.dispatch_id);
  }
  db_.rows().begin(result_columns);
  give_result(held.id, held.agent->kernel_no, held.row, false);
  db_.fixed("INSERT OR REPLACE " RESULT).run();
  if (d.finished_at) {
    db_.rows().begin(range_columns);
    give_range({held.agent->kernel_no, *d.finished_at, held.id, held.id});
    db_.fixed(INSERT_RANGES).run();
  }
  if (d.status == dispatch_status::pending) {
    put_in({held.agent, d.priority, d.created_at, d.not_before, true, held.id, held.id,
            d.dispatch_id});
    names_.waiting(*held.agent, d.not_before > d.created_at, 1);
  }
  names_.moved(*held.agent, held.was, d.status);
}

void operations::give_result(std::int64_t id, std::int64_t kernel_no, const queue::queue_row& row,
                             bool first) {
  const auto& d = row.d;
  const auto& o = d.outcome;
  auto& to = db_.rows();
  to.bind(id).bind(kernel_no).bind(name_of(d.status)).bind(d.attempt).bind(d.rescues);
  to.bind(d.fence).bind(row.settled_fence);
  to.bind(first ? std::nullopt : std::optional{d.not_before}).bind(names_.node_no(row.last_owner));
  to.bind(d.started_at).bind(d.finished_at);
  to.bind(name_of(o.execution)).bind(name_of(o.claim)).bind(name_of(o.verification));
  to.bind(name_of(o.failure)).bind(o.exit_code).bind(static_cast<std::int64_t>(o.output_cut));
  to.bind(o.session_id)
      .bind(o.summary)
      .bind(o.error)
      .bind(queue::usage_json(o.usage))
      .bind(d.attempts_json);
  to.bind(o.output);
}

void operations::write_first_results() {
  if (first_results_.empty())
    return;
  std::vector<const first_result*> all;
  all.reserve(first_results_.size());
  for (const auto& r : first_results_)
    all.push_back(&r);
  std::ranges::sort(all, {}, &first_result::id);
  for (auto run = all.begin(); run != all.end();) {
    const auto first = (*run)->id;
    auto last = first;
    while (++run != all.end() && (*run)->id == last + 1)
      ++last;
    end_leases(first, last);
  }
  for (std::size_t from = 0; from < all.size(); from += rows_at_once) {
    db_.rows().begin(result_columns);
    for (auto i = from; i < std::min(from + rows_at_once, all.size()); ++i)
      give_result(all[i]->id, all[i]->kernel_no, all[i]->row, true);
    // A first result is an insert at the table's end; only REPLACE looks for an older one.
    db_.fixed("INSERT " RESULT).run();
  }
  write_ranges(all);
  first_results_.clear();
}

void operations::give_range(const ended_range& r) {
  db_.rows().bind(r.kernel_no).bind(r.finished_at).bind(r.first_id).bind(r.last_id);
}

void operations::write_ranges(const std::vector<const first_result*>& by_id) {
  std::map<std::pair<std::int64_t, utc_time>, ended_range> open;
  db_.rows().begin(range_columns);
  for (const auto* result : by_id) {
    const auto finished_at = result->row.d.finished_at.value();
    auto& r = open[{result->kernel_no, finished_at}];
    if (r.last_id != 0 && result->id - r.last_id > widest_gap) {
      give_range(r);
      r.last_id = 0;
    }
    if (r.last_id == 0)
      r = {result->kernel_no, finished_at, result->id, result->id};
    r.last_id = result->id;
  }
  for (const auto& [key, r] : open)
    give_range(r);
  db_.fixed(INSERT_RANGES).run();
}

void operations::write_gathered() {
  write_leases();
  write_first_results();
}

#undef INSERT_RANGES
#undef RESULT

} // namespace boyd::adapters::sqlite
