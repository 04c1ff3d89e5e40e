#include "archive.hpp"

#include "boyd/queue/archive.hpp"
#include "boyd/queue/cycle_json.hpp"
#include "directory.hpp"
#include "operations.hpp"
#include "schema.hpp"
#include "session.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace boyd::adapters {

namespace {

using postgres::copy_rows;
using postgres::failure;
using postgres::parameters;
using store::archive_column;
using store::archive_row;
using store::archive_section;
using kind = archive_column::kind;

/// Counting a large queue may take a while.
constexpr milliseconds longest_finish = 10min;

/// "dispatches" in the order of archive_sections(): what says nothing is NULL in the table, and
/// written out here.
std::string read_dispatches() {
  const auto of_request = [](const auto& c) {
    const auto name = std::string("d.") + c.name;
    return c.form.nothing == nullptr ? name : "coalesce(" + name + ", '" + c.form.nothing + "')";
  };
  const auto of_result = [](const auto& c) {
    const auto name = std::string("s.") + c.name;
    return c.form.nothing == nullptr ? name
                                     : "CASE WHEN s.status IS NOT NULL THEN coalesce(" + name +
                                           ", '" + c.form.nothing + "') END";
  };
  return "SELECT d.dispatch_id, k.kernel_id, a.agent_id, " +
         queue::listed(queue::columns_of_request, of_request) +
         ", d.prompt, r.owner, r.lease_expires_at, r.started_at, r.fence, r.attempt, " +
         queue::listed(queue::columns_of_result, of_result) + ", " +
         of_result(queue::output_column) +
         " FROM dispatch_requests d JOIN agents a ON a.no = d.agent_no JOIN kernels k "
         "ON k.no = a.kernel_no LEFT JOIN (SELECT m.id, c.* FROM dispatch_running c, "
         "unnest(c.members) AS m(id)) r ON r.id = d.dispatch_id LEFT JOIN dispatch_results s "
         "ON s.dispatch_id = d.dispatch_id WHERE d.dispatch_id > $1::text COLLATE \"C\" "
         "ORDER BY d.dispatch_id LIMIT $2::bigint";
}

/// The forms of the columns of a request, or of a result, as they follow each other in an archive.
template <class Columns, class Last>
std::vector<queue::column_form> forms_of(const Columns& columns, const Last& last) {
  std::vector<queue::column_form> all;
  queue::for_each_column(columns, [&](const auto& c) { all.push_back(c.form); });
  all.push_back(last.form);
  return all;
}

std::string names_of(std::span<const archive_column> columns) {
  std::string names;
  for (const auto& c : columns)
    names += (names.empty() ? "" : ",") + std::string(c.name);
  return names;
}

std::string value_of(const archive_column& column) {
  const std::string name = column.name;
  if (column.type == kind::boolean)
    return name + "::int";
  return column.type == kind::names ? "array_to_json(" + name + ")" : name;
}

std::string question_of(const archive_section& section, bool from_start) {
  const std::string name = section.name;
  if (name == "dispatches")
    return read_dispatches();
  std::string values;
  for (const auto& c : section.columns)
    values += (values.empty() ? "" : ",") + value_of(c);
  const auto key = names_of(std::span(section.columns).first(section.key));
  std::string sql = "SELECT " + values + " FROM " + name + " WHERE true";
  if (name == "facts")
    sql += " AND scope <> '" + std::string(queue::own_facts) + "'";
  std::size_t n = 0;
  if (!from_start) {
    std::string marks;
    for (; n < section.key; ++n)
      marks += (n == 0 ? "$" : ",$") + std::to_string(n + 1) +
               (section.columns[n].type == kind::integer ? "::bigint" : "::text");
    sql += " AND (" + key + ") > (" + marks + ")";
  }
  return sql + " ORDER BY " + key + " LIMIT $" + std::to_string(n + 1) + "::bigint";
}

void add(copy_rows& to, const archive_column& column, const std::optional<std::string>& value) {
  if (!value) {
    to.add_null();
  } else if (column.type == kind::names) {
    postgres::array names;
    for (const auto& each : queue::names_from_json(*value))
      names.add(each);
    to.add(names.literal());
  } else {
    to.add(*value);
  }
}

class postgres_archive final : public store_archive {
 public:
  explicit postgres_archive(postgres_options options) : options_(std::move(options)) {}

  result<void> open() override;
  result<std::vector<std::string>> schema_differences() override;
  result<std::vector<archive_row>> read(const archive_section& section, const archive_row& after,
                                        std::size_t limit) override;
  result<void> write(const archive_section& section, const std::vector<archive_row>& rows,
                     const std::string& mark, const std::string& value) override;
  result<void> finish() override;

 private:
  template <class F>
  result<void> guarded(F f);
  void write_dispatches(const std::vector<archive_row>& rows);

  postgres_options options_;
  std::unique_ptr<postgres::session> db_;
  std::unique_ptr<postgres::directory> names_;
};

template <class F>
result<void> postgres_archive::guarded(F f) {
  try {
    f();
    return {};
  } catch (const failure& e) {
    if (names_)
      names_->forget();
    if (db_)
      db_->rollback();
    auto why = e.why;
    why.where = postgres::place(options_);
    return fail(std::move(why));
  }
}

result<void> postgres_archive::open() {
  return guarded([&] {
    db_ = std::make_unique<postgres::session>(options_);
    names_ = std::make_unique<postgres::directory>(*db_);
    db_->begin();
    if (db_->run("SELECT to_regnamespace('boyd') IS NOT NULL").text(0, 0) == "t")
      db_->script("SET search_path TO boyd");
    db_->commit();
  });
}

result<std::vector<std::string>> postgres_archive::schema_differences() {
  std::vector<std::string> lines;
  auto done = guarded([&] {
    db_->begin();
    const std::string schema{db_->run("SELECT current_schema()").text(0, 0)};
    const auto found = postgres::schema_of(*db_, schema);
    lines = queue::schema_differences(postgres::migrated_schema(*db_), found);
    db_->rollback();
  });
  if (!done)
    return fail(std::move(done.error()));
  return lines;
}

result<std::vector<archive_row>> postgres_archive::read(const archive_section& section,
                                                        const archive_row& after,
                                                        std::size_t limit) {
  std::vector<archive_row> rows;
  auto done = guarded([&] {
    parameters p;
    if (after.empty() && std::string_view(section.name) == "dispatches")
      p.add("");
    for (const auto& value : after)
      p.add(*value);
    p.add(static_cast<std::int64_t>(limit));
    db_->begin_reading();
    const auto a = db_->run(question_of(section, after.empty()), p);
    db_->commit();
    for (int r = 0; r < a.rows(); ++r) {
      auto& row = rows.emplace_back();
      for (std::size_t i = 0; i < section.columns.size(); ++i) {
        const auto column = static_cast<int>(i);
        if (a.is_null(r, column))
          row.emplace_back();
        else
          row.emplace_back(queue::archive_value(section.columns[i], a.text(r, column)));
      }
    }
  });
  if (!done)
    return fail(std::move(done.error()));
  return rows;
}

result<void> postgres_archive::write(const archive_section& section,
                                     const std::vector<archive_row>& rows, const std::string& mark,
                                     const std::string& value) {
  return guarded([&] {
    db_->begin();
    if (std::string_view(section.name) == "dispatches") {
      write_dispatches(rows);
    } else {
      copy_rows lines;
      for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
          add(lines, section.columns[i], row[i]);
        lines.end_row();
      }
      db_->copy(section.name, names_of(section.columns), lines);
    }
    db_->run("INSERT INTO facts(scope, key, value) VALUES($1, $2, $3) ON CONFLICT (scope, key) DO "
             "UPDATE SET value = excluded.value",
             parameters{}.add(queue::own_facts).add(mark).add(value));
    db_->commit();
  });
}

/// Rows for the four tables of dispatches.
struct dispatch_lines {
  copy_rows requests, results, running, waiting;
};

constexpr auto lease_at = queue::request_columns;
constexpr auto result_at = queue::request_columns + queue::lease_columns;

void add_result(copy_rows& to, const archive_row& row, const postgres::agent_entry& agent) {
  const auto& columns = queue::archive_sections().front().columns;
  static const auto forms = forms_of(queue::columns_of_result, queue::output_column);
  to.add(*row[0]).add(agent.kernel_no);
  for (auto i = result_at; i < row.size(); ++i) {
    const auto* nothing = forms.at(i - result_at).nothing;
    if (nothing != nullptr && row[i] == nothing)
      to.add_null();
    else
      add(to, columns[i], row[i]);
  }
  to.end_row();
}

/// Each waits, or runs, in a row of its own.
void add_dispatch(dispatch_lines& to, const archive_row& row, const postgres::agent_entry& agent) {
  constexpr std::size_t asked_at = 3;
  constexpr auto priority = asked_at + queue::place_of(queue::columns_of_request, "priority");
  constexpr auto created_at = asked_at + queue::place_of(queue::columns_of_request, "created_at");
  constexpr auto due = asked_at + queue::place_of(queue::columns_of_request, "not_before");
  constexpr auto result_due = result_at + queue::place_of(queue::columns_of_result, "not_before");
  static const auto forms = forms_of(queue::columns_of_request, queue::prompt_column);
  to.requests.add(*row[0]).add(agent.no);
  for (auto i = asked_at; i < lease_at; ++i) {
    const auto* nothing = forms.at(i - asked_at).nothing;
    nothing != nullptr ? to.requests.add_unless(nothing, *row[i]) : to.requests.add(*row[i]);
  }
  to.requests.end_row();
  const bool attempted = row[result_at].has_value();
  if (attempted)
    add_result(to.results, row, agent);
  postgres::array members;
  members.add(*row[0]);
  const auto* const has_result = attempted ? "t" : "f";
  if (row[lease_at]) {
    to.running.add(agent.no);
    for (auto i = lease_at; i < result_at; ++i)
      to.running.add(*row[i]);
    to.running.add(has_result).add(members.literal());
    to.running.end_row();
  } else if (!attempted || row[result_at] == "pending") {
    const auto& not_before = row[result_due] ? row[result_due] : row[due];
    to.waiting.add(agent.no).add(*row[priority]).add(*row[created_at]).add(*row[0]);
    to.waiting.add(*not_before).add(1).add(has_result).add(members.literal());
    to.waiting.end_row();
  }
}

void postgres_archive::write_dispatches(const std::vector<archive_row>& rows) {
  std::set<postgres::directory::name> agents;
  for (const auto& row : rows)
    agents.emplace(*row[1], *row[2]);
  names_->ensure(agents);
  dispatch_lines lines;
  for (const auto& row : rows)
    add_dispatch(lines, row, *names_->find(*row[1], *row[2]));
  db_->copy("dispatch_requests",
            "dispatch_id,agent_no," + postgres::names_of(queue::columns_of_request) + ",prompt",
            lines.requests);
  db_->copy("dispatch_results",
            "dispatch_id,kernel_no," + postgres::names_of(queue::columns_of_result) + ",output",
            lines.results);
  db_->copy("dispatch_running",
            "agent_no,owner,lease_expires_at,started_at,fence,attempt,attempted,members",
            lines.running);
  db_->copy("dispatch_waiting",
            "agent_no,priority,created_at,first_id,not_before,size,attempted,members",
            lines.waiting);
}

result<void> postgres_archive::finish() {
  return guarded([&] {
    db_->begin();
    db_->answer_within(longest_finish);
    const auto limit = std::to_string(longest_finish.count());
    db_->script("SET LOCAL statement_timeout=" + limit +
                ";DELETE FROM dispatch_counts;"
                "INSERT INTO dispatch_counts SELECT kernel_no, status, 0, count(*) "
                "FROM dispatch_results WHERE status <> 'pending' GROUP BY 1, 2;"
                "SELECT setval('cycles_no', max(no)) FROM cycles HAVING max(no) >= 1");
    db_->commit();
    db_->answer_within(options_.statement_timeout);
  });
}

} // namespace

std::unique_ptr<store_archive> make_postgres_archive(postgres_options options) {
  return std::make_unique<postgres_archive>(std::move(options));
}

} // namespace boyd::adapters
