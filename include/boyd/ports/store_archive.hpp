#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The whole content of a store in a form that every kind of store reads and writes: for moving
/// from one to another.
namespace boyd::store {

/// One column of a section. Its values are texts: numbers in decimals, booleans as 0 and 1, JSON in
/// one form (queue::archive_value), names as a JSON list.
struct archive_column {
  enum class kind : std::uint8_t { text, integer, boolean, json, names };
  const char* name;
  kind type = kind::text;
};

/// A table, in the order of its key: its first `key` columns, none of which is NULL. Texts are
/// ordered by bytes.
struct archive_section {
  const char* name;
  std::size_t key = 1;
  std::vector<archive_column> columns;
};

using archive_row = std::vector<std::optional<std::string>>;

} // namespace boyd::store

namespace boyd {

/// A store that is opened to be read or written as a whole, while no node uses it. Blocking; not
/// thread-safe. Errors as those of dispatch_store.
class store_archive {
 public:
  virtual ~store_archive() = default;

  /// Connects; the schema must be this build's (a dispatch_store has opened it before).
  virtual result<void> open() = 0;

  /// What the schema lacks of a freshly migrated one, or has in another form, one line each; empty
  /// when all is there.
  virtual result<std::vector<std::string>> schema_differences() = 0;

  /// Rows of `section` behind the one with the key `after` (empty: from the first one), at most
  /// `limit`; fewer: there are no more.
  virtual result<std::vector<store::archive_row>> read(const store::archive_section& section,
                                                       const store::archive_row& after,
                                                       std::size_t limit) = 0;

  /// Adds rows that are not there yet and the fact store/`mark` = `value`, in one transaction.
  virtual result<void> write(const store::archive_section& section,
                             const std::vector<store::archive_row>& rows, const std::string& mark,
                             const std::string& value) = 0;

  /// Counts and sequences for what was written; may be repeated.
  virtual result<void> finish() = 0;
};

} // namespace boyd
