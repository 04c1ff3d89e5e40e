#include "operations.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::adapters::sqlite {

namespace {

constexpr int lease_at = request_column_count;
constexpr int result_at = lease_at + 5;
/// With the dispatch's number, its kernel's, and the output.
constexpr std::size_t result_columns = 2 + queue::result_column_count + 1;
static_assert(result_columns <= given_rows::most_columns);

template <class Column>
void read_column(const statement& s, int at, directory& names, const Column& c,
                 queue::queue_row& row) {
  using type = typename Column::value;
  auto& to = c.of(row);
  if constexpr (std::is_enum_v<type>)
    queue::read_enumerator(c, s.view(at), row);
  else if constexpr (std::is_same_v<type, run_usage>)
    to = queue::usage_from(s.view(at));
  else if constexpr (std::is_same_v<type, std::string>)
    to = c.form.node ? names.node_id(s.integer(at)) : s.text(at);
  else if constexpr (std::is_same_v<type, std::optional<utc_time>>)
    to = s.optional_time(at);
  else if constexpr (std::is_integral_v<type>)
    to = static_cast<type>(s.integer(at));
  else if (!c.form.as_requested || !s.null(at))
    to = s.time(at);
}

/// Columns of a result, from `at` on.
template <class Columns>
void read_columns(const statement& s, int at, directory& names, const Columns& columns,
                  queue::queue_row& row) {
  queue::for_each_column(columns, [&](const auto& c) { read_column(s, at++, names, c, row); });
}

/// The attempt under way; what the one before left is hidden by it (queue::claim_row).
void read_lease(const statement& s, directory& names, queue::queue_row& row) {
  auto& d = row.d;
  d.status = dispatch_status::running;
  d.fence = s.integer(lease_at);
  d.attempt = static_cast<int>(s.integer(lease_at + 1));
  d.lease_owner = names.node_id(s.integer(lease_at + 2));
  row.last_owner = d.lease_owner;
  d.lease_expires_at = s.time(lease_at + 3);
  d.started_at = s.time(lease_at + 4);
  d.outcome = run_outcome{};
}

} // namespace

const std::string& row_columns() {
  static const auto all =
      request_columns() + ", r.fence, r.attempt, r.owner_no, r.lease_expires_at, r.started_at, " +
      queue::listed(queue::columns_of_result, [](const auto& c) { return "s." + column_name(c); });
  return all;
}

const std::string& request_columns() {
  static const auto all =
      "d.id, d.dispatch_id, d.agent_no, " +
      queue::listed(queue::columns_of_request, [](const auto& c) { return "d." + column_name(c); });
  return all;
}

read_dispatch read_request(const statement& s, directory& names) {
  read_dispatch out;
  out.id = s.integer(0);
  auto& d = out.row.d;
  d.dispatch_id = s.text(1);
  out.agent = &names.of(s.integer(2));
  d.kernel_id = out.agent->kernel_id;
  d.agent_id = out.agent->agent_id;
  read_columns(s, 3, names, queue::columns_of_request, out.row);
  return out;
}

read_dispatch read_row(const statement& s, directory& names) {
  auto out = read_request(s, names);
  out.attempted = !s.null(result_at);
  if (out.attempted) {
    read_columns(s, result_at, names, queue::columns_of_result, out.row);
    queue::read_status(s.view(result_at), out.row);
  }
  if (!s.null(lease_at))
    read_lease(s, names, out.row);
  return out;
}

operations::stored operations::load(const std::string& dispatch_id) {
  static const std::string sql = "SELECT " + row_columns() + ", s.output FROM dispatch_requests d" +
                                 std::string{row_joins} + " WHERE d.dispatch_id = ?";
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

namespace {

/// `INSERT`, or `INSERT OR REPLACE`, of given rows.
std::string into_results(const std::string& insert) {
  std::string values = "c0";
  for (std::size_t i = 1; i < result_columns; ++i)
    values += ", c" + std::to_string(i);
  return insert + " INTO dispatch_results(id, kernel_no, " +
         queue::listed(queue::columns_of_result, [](const auto& c) { return column_name(c); }) +
         ", output) SELECT " + values + " FROM given_rows";
}

} // namespace

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
  static const auto replace = into_results("INSERT OR REPLACE");
  db_.fixed(replace.c_str()).run();
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
  auto& to = db_.rows();
  to.bind(id).bind(kernel_no);
  queue::for_each_column(queue::columns_of_result, [&](const auto& c) {
    if (c.form.as_requested && first)
      to.bind(std::optional<utc_time>{});
    else
      give(to, names_, c, row);
  });
  give(to, names_, queue::output_column, row);
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
  // A first result is an insert at the table's end; only REPLACE looks for an older one.
  static const auto insert = into_results("INSERT");
  for (std::size_t from = 0; from < all.size(); from += rows_at_once) {
    db_.rows().begin(result_columns);
    for (auto i = from; i < std::min(from + rows_at_once, all.size()); ++i)
      give_result(all[i]->id, all[i]->kernel_no, all[i]->row, true);
    db_.fixed(insert.c_str()).run();
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

} // namespace boyd::adapters::sqlite
