#include "schema.hpp"

#include "migrations.hpp"

namespace boyd::embedded {
extern const char* const schema_sql;
} // namespace boyd::embedded

namespace boyd::adapters::postgres {

namespace {

using queue::schema_part;

constexpr const char* scratch = "boyd_schema_check";

} // namespace

std::vector<schema_part> schema_of(session& db, const std::string& schema) {
  const auto a = db.run(embedded::schema_sql, parameters{}.add(schema));
  std::vector<schema_part> parts;
  for (int i = 0; i < a.rows(); ++i)
    parts.push_back(
        {std::string(a.text(i, 0)), std::string(a.text(i, 1)), std::string(a.text(i, 2))});
  return parts;
}

std::vector<schema_part> migrated_schema(session& db) {
  const std::string name = scratch;
  db.script("SET LOCAL client_min_messages=warning;CREATE SCHEMA " + name +
            ";SET LOCAL search_path TO " + name);
  for (const auto& m : migrations())
    db.script(m.sql);
  return schema_of(db, name);
}

} // namespace boyd::adapters::postgres
