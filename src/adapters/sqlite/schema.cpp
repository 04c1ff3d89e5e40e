#include "schema.hpp"

#include "migrations.hpp"

#include <sqlite3.h>

#include <string>
#include <tuple>

namespace boyd::adapters::sqlite {

namespace {

using queue::schema_part;

void add_columns(connection& db, const std::string& table, std::vector<schema_part>& to) {
  auto s = db.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)");
  s.bind(table);
  while (s.step()) {
    auto form = s.text(1);
    if (s.integer(2) != 0)
      form += " not null";
    if (s.integer(3) != 0)
      form += " in the primary key";
    to.push_back({table, "column " + s.text(0) + " of table " + table, std::move(form)});
  }
}

/// Columns in order; not the text, which versions of SQLite write in different ways.
std::string form_of_index(connection& db, const std::string& index) {
  std::string form;
  auto s = db.prepare("SELECT name, \"desc\" FROM pragma_index_xinfo(?) WHERE key = 1");
  s.bind(index);
  while (s.step())
    form += (form.empty() ? "on " : ", ") + s.text(0) + (s.integer(1) != 0 ? " desc" : "");
  return form;
}

} // namespace

std::vector<schema_part> schema_of(connection& db) {
  std::vector<std::tuple<std::string, std::string, std::string>> all;
  {
    auto s = db.prepare("SELECT type, name, tbl_name FROM sqlite_master "
                        "WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type = 'table' DESC, name");
    while (s.step())
      all.emplace_back(s.text(0), s.text(1), s.text(2));
  }
  std::vector<schema_part> parts;
  for (const auto& [type, name, table] : all) {
    if (type == "table") {
      parts.push_back({name, "table " + name, {}});
      add_columns(db, name, parts);
    } else if (type == "index") {
      parts.push_back({table, "index " + name + " of table " + table, form_of_index(db, name)});
    } else if (type == "trigger") {
      parts.push_back({table, "trigger " + name + " of table " + table, {}});
    } else {
      parts.push_back({{}, type + " " + name, {}});
    }
  }
  return parts;
}

std::vector<schema_part> migrated_schema() {
  connection db(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX);
  for (const auto& m : migrations())
    db.execute(std::string{m.sql});
  return schema_of(db);
}

} // namespace boyd::adapters::sqlite
