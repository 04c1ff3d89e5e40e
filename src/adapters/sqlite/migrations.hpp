#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boyd::adapters::sqlite {

/// One step of the schema: applied once, in order, in its own transaction together with its row in
/// schema_migrations. Never edited after a release; a change is a new step.
struct migration {
  int version = 0;
  std::string_view name;
  std::string_view sql;

  /// For people: "schema version 3 (spend)".
  std::string title() const {
    return "schema version " + std::to_string(version) + " (" + std::string(name) + ")";
  }
};

/// All steps, versions 1, 2, … without gaps.
const std::vector<migration>& migrations();

} // namespace boyd::adapters::sqlite
