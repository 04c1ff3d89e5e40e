#pragma once

#include <string>
#include <string_view>

namespace boyd::queue {

/// One step of a database's schema: applied once, in order, in a transaction of its own with its
/// row in schema_migrations. Never edited after a release; a change is a new step.
struct migration {
  int version = 0;
  std::string_view name;
  std::string_view sql;

  /// For people: "schema version 3 (spend)".
  std::string title() const {
    return "schema version " + std::to_string(version) + " (" + std::string(name) + ")";
  }
};

} // namespace boyd::queue
