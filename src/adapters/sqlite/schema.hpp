#pragma once

#include "boyd/queue/schema_parts.hpp"
#include "connection.hpp"

#include <vector>

namespace boyd::adapters::sqlite {

/// What is in the open database. Throws `failure`.
std::vector<queue::schema_part> schema_of(connection& db);

/// What the migrations make, in a database in memory. Throws `failure`.
std::vector<queue::schema_part> migrated_schema();

} // namespace boyd::adapters::sqlite
