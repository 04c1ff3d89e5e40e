#include "given_rows.hpp"

#include <sqlite3.h>

#include <new>

namespace boyd::adapters::sqlite {

namespace {

struct table : sqlite3_vtab {
  explicit table(given_rows* r) : sqlite3_vtab{}, rows(r) {}
  given_rows* rows;
};

struct cursor : sqlite3_vtab_cursor {
  explicit cursor(given_rows* r) : sqlite3_vtab_cursor{}, rows(r) {}
  given_rows* rows;
};

int connect(sqlite3* db, void* rows, int, const char* const*, sqlite3_vtab** made, char**) {
  std::string columns = "CREATE TABLE given_rows(c0";
  for (std::size_t i = 1; i < given_rows::most_columns; ++i)
    columns += ", c" + std::to_string(i);
  if (const int rc = sqlite3_declare_vtab(db, (columns + ")").c_str()); rc != SQLITE_OK)
    return rc;
  *made = new (std::nothrow) table(static_cast<given_rows*>(rows));
  return *made == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int disconnect(sqlite3_vtab* t) {
  delete static_cast<table*>(t);
  return SQLITE_OK;
}

/// There is one way: from the first row to the last.
int plan(sqlite3_vtab*, sqlite3_index_info* info) {
  constexpr double some_rows = 64;
  info->estimatedCost = some_rows;
  info->estimatedRows = static_cast<sqlite3_int64>(some_rows);
  return SQLITE_OK;
}

int open(sqlite3_vtab* t, sqlite3_vtab_cursor** made) {
  *made = new (std::nothrow) cursor(static_cast<table*>(t)->rows);
  return *made == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int close(sqlite3_vtab_cursor* c) {
  delete static_cast<cursor*>(c);
  return SQLITE_OK;
}

int first(sqlite3_vtab_cursor* c, int, const char*, int, sqlite3_value**) {
  static_cast<cursor*>(c)->rows->reach(0);
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* c) {
  auto& rows = *static_cast<cursor*>(c)->rows;
  rows.reach(rows.reached() + 1);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* c) {
  const auto& rows = *static_cast<cursor*>(c)->rows;
  return rows.reached() >= rows.size() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* c, sqlite3_context* to, int number) {
  static_cast<cursor*>(c)->rows->give(to, static_cast<std::size_t>(number));
  return SQLITE_OK;
}

int rowid(sqlite3_vtab_cursor* c, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<cursor*>(c)->rows->reached());
  return SQLITE_OK;
}

/// Without xCreate the table is there by its name and cannot be made in a file.
const sqlite3_module& module() {
  static const sqlite3_module m = [] {
    sqlite3_module made{};
    made.xConnect = connect;
    made.xBestIndex = plan;
    made.xDisconnect = disconnect;
    made.xOpen = open;
    made.xClose = close;
    made.xFilter = first;
    made.xNext = next;
    made.xEof = at_end;
    made.xColumn = column;
    made.xRowid = rowid;
    return made;
  }();
  return m;
}

} // namespace

int given_rows::attach(sqlite3* db) {
  return sqlite3_create_module(db, "given_rows", &module(), this);
}

given_rows& given_rows::begin(std::size_t columns) {
  columns_ = columns;
  values_.clear();
  kept_.clear();
  reached_ = 0;
  return *this;
}

given_rows& given_rows::bind(std::int64_t number) {
  values_.push_back({kind::integer, number, {}});
  return *this;
}

given_rows& given_rows::bind(std::string_view text) {
  values_.push_back({kind::text, 0, text});
  return *this;
}

given_rows& given_rows::bind(const std::optional<utc_time>& t) {
  if (t)
    return bind(*t);
  values_.emplace_back();
  return *this;
}

void given_rows::give(sqlite3_context* to, std::size_t column) const {
  if (column >= columns_)
    return sqlite3_result_null(to);
  const auto& v = values_[reached_ * columns_ + column];
  switch (v.is) {
  case kind::nothing:
    return sqlite3_result_null(to);
  case kind::integer:
    return sqlite3_result_int64(to, v.number);
  case kind::text:
    return sqlite3_result_text64(to, v.text.data() == nullptr ? "" : v.text.data(), v.text.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
  }
}

} // namespace boyd::adapters::sqlite
