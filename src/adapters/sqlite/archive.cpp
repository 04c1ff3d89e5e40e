#include "archive.hpp"

#include "boyd/queue/archive.hpp"
#include "connection.hpp"
#include "directory.hpp"
#include "operations.hpp"
#include "schema.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace boyd::adapters {

namespace {

using sqlite::failure;
using store::archive_column;
using store::archive_row;
using store::archive_section;

constexpr int busy_milliseconds = 5'000;

/// Places in a row of "dispatches", whose first three columns are its ids.
constexpr auto priority_at = 3 + queue::place_of(queue::columns_of_request, "priority");
constexpr auto created_at = 3 + queue::place_of(queue::columns_of_request, "created_at");
constexpr auto due_at = 3 + queue::place_of(queue::columns_of_request, "not_before");

/// "dispatches" in the order of archive_sections(), with a condition on the key to come.
std::string read_dispatches() {
  const auto of_request = [](const auto& c) { return std::string("d.") + c.name; };
  const auto of_result = [](const auto& c) {
    return c.form.node ? "CASE WHEN s.id IS NOT NULL THEN coalesce(l.node_id, '') END"
                       : std::string("s.") + c.name;
  };
  return "SELECT d.dispatch_id, k.kernel_id, a.agent_id, " +
         queue::listed(queue::columns_of_request, of_request) +
         ", d.prompt, n.node_id, r.lease_expires_at, r.started_at, r.fence, r.attempt, " +
         queue::listed(queue::columns_of_result, of_result) +
         ", s.output FROM dispatch_requests d JOIN agents a ON a.no = d.agent_no JOIN kernels k "
         "ON k.no = a.kernel_no LEFT JOIN dispatch_running r ON r.first_id = (SELECT "
         "max(q.first_id) FROM dispatch_running q WHERE q.first_id <= d.id) AND r.last_id >= d.id "
         "LEFT JOIN node_names n ON n.no = r.owner_no LEFT JOIN dispatch_results s ON s.id = d.id "
         "LEFT JOIN node_names l ON l.no = s.last_owner_no WHERE d.dispatch_id > ? "
         "ORDER BY d.dispatch_id LIMIT ?";
}

std::string names_of(std::span<const archive_column> columns) {
  std::string names;
  for (const auto& c : columns)
    names += (names.empty() ? "\"" : ",\"") + std::string(c.name) + "\"";
  return names;
}

std::string marks_of(std::size_t n) {
  std::string marks;
  for (std::size_t i = 0; i < n; ++i)
    marks += i == 0 ? "?" : ",?";
  return marks;
}

std::string question_of(const archive_section& section, bool from_start) {
  const std::string name = section.name;
  if (name == "dispatches")
    return read_dispatches();
  const auto key = names_of(std::span(section.columns).first(section.key));
  std::string sql = "SELECT " + names_of(section.columns) + " FROM " + name + " WHERE 1=1";
  if (name == "facts")
    sql += " AND scope <> '" + std::string(queue::own_facts) + "'";
  if (!from_start)
    sql += " AND (" + key + ") > (" + marks_of(section.key) + ")";
  return sql + " ORDER BY " + key + " LIMIT ?";
}

std::int64_t number_of(std::string_view digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

class sqlite_archive final : public store_archive {
 public:
  explicit sqlite_archive(std::string path) : path_(std::move(path)) {}

  result<void> open() override;
  result<std::vector<std::string>> schema_differences() override;
  result<std::vector<archive_row>> read(const archive_section& section, const archive_row& after,
                                        std::size_t limit) override;
  result<void> write(const archive_section& section, const std::vector<archive_row>& rows,
                     const std::string& mark, const std::string& value) override;
  result<void> finish() override;

 private:
  template <class F>
  result<void> in_transaction(F f);
  void write_row(const archive_section& section, const archive_row& row);
  void write_dispatch(const archive_row& row);
  void bind(sqlite::statement& to, const archive_column& column,
            const std::optional<std::string>& value);
  void bind_null_or_number(sqlite::statement& to, const std::optional<std::string>& value);

  std::string path_;
  std::unique_ptr<sqlite::connection> db_;
  std::unique_ptr<sqlite::directory> names_;
};

result<void> sqlite_archive::open() {
  try {
    db_ = std::make_unique<sqlite::connection>(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
    db_->execute("PRAGMA busy_timeout=" + std::to_string(busy_milliseconds));
    db_->execute("PRAGMA synchronous=FULL");
    names_ = std::make_unique<sqlite::directory>(*db_);
    return {};
  } catch (const failure& f) {
    return fail(sqlite::to_error(f, path_));
  }
}

result<std::vector<std::string>> sqlite_archive::schema_differences() {
  try {
    return queue::schema_differences(sqlite::migrated_schema(), sqlite::schema_of(*db_));
  } catch (const failure& f) {
    return fail(sqlite::to_error(f, path_));
  }
}

result<std::vector<archive_row>> sqlite_archive::read(const archive_section& section,
                                                      const archive_row& after, std::size_t limit) {
  try {
    const bool is_dispatches = std::string_view(section.name) == "dispatches";
    auto s = db_->prepare(question_of(section, after.empty()));
    if (after.empty() && is_dispatches)
      s.bind("");
    for (std::size_t i = 0; i < after.size(); ++i)
      bind(s, section.columns[i], after[i]);
    s.bind(static_cast<std::int64_t>(limit));
    std::vector<archive_row> rows;
    while (s.step()) {
      auto& row = rows.emplace_back();
      for (std::size_t i = 0; i < section.columns.size(); ++i) {
        const auto column = static_cast<int>(i);
        if (s.null(column))
          row.emplace_back();
        else
          row.emplace_back(queue::archive_value(section.columns[i], s.view(column)));
      }
    }
    return rows;
  } catch (const failure& f) {
    return fail(sqlite::to_error(f, path_));
  }
}

void sqlite_archive::bind_null_or_number(sqlite::statement& to,
                                         const std::optional<std::string>& value) {
  if (value)
    to.bind(number_of(*value));
  else
    to.bind(std::optional<utc_time>{});
}

void sqlite_archive::bind(sqlite::statement& to, const archive_column& column,
                          const std::optional<std::string>& value) {
  const bool is_number =
      column.type == archive_column::kind::integer || column.type == archive_column::kind::boolean;
  if (is_number || !value)
    bind_null_or_number(to, value);
  else
    to.bind(*value);
}

template <class F>
result<void> sqlite_archive::in_transaction(F f) {
  try {
    db_->execute("BEGIN IMMEDIATE");
    f();
    db_->execute("COMMIT");
    return {};
  } catch (const failure& e) {
    const auto why = sqlite::to_error(e, path_);
    names_->forget();
    try {
      if (db_->in_transaction())
        db_->execute("ROLLBACK");
    } catch (const failure&) {
      // the next transaction cannot begin, and says so
    }
    return fail(why);
  }
}

result<void> sqlite_archive::write(const archive_section& section,
                                   const std::vector<archive_row>& rows, const std::string& mark,
                                   const std::string& value) {
  return in_transaction([&] {
    const bool is_dispatches = std::string_view(section.name) == "dispatches";
    for (const auto& row : rows)
      is_dispatches ? write_dispatch(row) : write_row(section, row);
    auto fact = db_->prepare("INSERT OR REPLACE INTO facts(scope, key, value) VALUES(?,?,?)");
    fact.bind(queue::own_facts).bind(mark).bind(value).run();
  });
}

void sqlite_archive::write_row(const archive_section& section, const archive_row& row) {
  auto s =
      db_->prepare("INSERT INTO " + std::string(section.name) + "(" + names_of(section.columns) +
                   ") VALUES(" + marks_of(section.columns.size()) + ")");
  for (std::size_t i = 0; i < row.size(); ++i)
    bind(s, section.columns[i], row[i]);
  s.run();
}

/// Each dispatch is a range of its own.
void sqlite_archive::write_dispatch(const archive_row& row) {
  const auto columns = std::span(queue::archive_sections().front().columns);
  const auto& agent = names_->ensure(*row[1], *row[2]);
  const auto lease = std::span(row).subspan(queue::request_columns, queue::lease_columns);
  const auto ended = std::span(row).subspan(queue::request_columns + queue::lease_columns);
  const bool runs = lease[0].has_value();
  const bool attempted = ended[0].has_value();
  auto request =
      db_->prepare("INSERT INTO dispatch_requests(dispatch_id, agent_no, " +
                   queue::listed(queue::columns_of_request, [](const auto& c) { return c.name; }) +
                   ", prompt) VALUES(" + marks_of(queue::request_columns - 1) + ")");
  request.bind(*row[0]).bind(agent.no);
  for (std::size_t i = 3; i < queue::request_columns; ++i)
    bind(request, columns[i], row[i]);
  request.run();
  const auto id = db_->last_id();
  if (attempted) {
    constexpr auto last_owner = queue::place_of(queue::columns_of_result, "last_owner");
    auto result = db_->prepare("INSERT INTO dispatch_results(id, kernel_no, " +
                               queue::listed(queue::columns_of_result,
                                             [](const auto& c) { return sqlite::column_name(c); }) +
                               ", output) VALUES(" + marks_of(2 + ended.size()) + ")");
    result.bind(id).bind(agent.kernel_no);
    const auto first = queue::request_columns + queue::lease_columns;
    for (std::size_t i = 0; i < ended.size(); ++i)
      if (i == last_owner)
        result.bind(names_->node_no(ended[i].value_or("")));
      else
        bind(result, columns[first + i], ended[i]);
    result.run();
    constexpr auto finished_at = queue::place_of(queue::columns_of_result, "finished_at");
    if (ended[finished_at])
      db_->prepare("INSERT INTO dispatch_ends VALUES(?,?,?,?)")
          .bind(agent.kernel_no)
          .bind(number_of(*ended[finished_at]))
          .bind(id)
          .bind(id)
          .run();
  }
  if (runs)
    db_->prepare("INSERT INTO dispatch_running(first_id, last_id, agent_no, fence, attempt, "
                 "owner_no, lease_expires_at, started_at, first) VALUES(?,?,?,?,?,?,?,?,?)")
        .bind(id)
        .bind(id)
        .bind(agent.no)
        .bind(number_of(*lease[3]))
        .bind(number_of(*lease[4]))
        .bind(names_->node_no(*lease[0]))
        .bind(number_of(*lease[1]))
        .bind(number_of(*lease[2]))
        .bind(attempted ? 0 : 1)
        .run();
  else if (!attempted || *ended[0] == "pending") {
    constexpr auto not_before = queue::place_of(queue::columns_of_result, "not_before");
    const auto& due = attempted && ended[not_before] ? ended[not_before] : row[due_at];
    db_->prepare("INSERT INTO dispatch_waiting(agent_no, priority, created_at, "
                 "first_dispatch_id, not_before, attempted, first_id, last_id) "
                 "VALUES(?,?,?,?,?,?,?,?)")
        .bind(agent.no)
        .bind(number_of(*row[priority_at]))
        .bind(number_of(*row[created_at]))
        .bind(*row[0])
        .bind(number_of(*due))
        .bind(attempted ? 1 : 0)
        .bind(id)
        .bind(id)
        .run();
  }
}

result<void> sqlite_archive::finish() {
  return in_transaction([&] {
    db_->execute("DELETE FROM dispatch_counts");
    db_->execute("INSERT INTO dispatch_counts SELECT kernel_id, status, count(*) FROM dispatches "
                 "GROUP BY 1, 2");
  });
}

} // namespace

std::unique_ptr<store_archive> make_sqlite_archive(std::string path) {
  return std::make_unique<sqlite_archive>(std::move(path));
}

} // namespace boyd::adapters
