#pragma once

#include "boyd/queue/schema_parts.hpp"
#include "session.hpp"

#include <string>
#include <vector>

namespace boyd::adapters::postgres {

/// What is in the schema of this name, inside the open transaction. Throws `failure`.
std::vector<queue::schema_part> schema_of(session& db, const std::string& schema);

/// What the migrations make: they run in a schema of their own, inside the open transaction, which
/// is to be rolled back. Throws `failure`, as where the role may make no schema.
std::vector<queue::schema_part> migrated_schema(session& db);

} // namespace boyd::adapters::postgres
