#pragma once

#include <string>
#include <vector>

namespace boyd::queue {

/// One thing of a database's schema, e.g. {"cycles", "column no of table cycles", "bigint not
/// null"}.
struct schema_part {
  std::string table; ///< whose it is; empty: nobody's
  std::string name;  ///< what it is, as a person is told
  std::string form;  ///< how it is; empty: being there is enough

  auto operator<=>(const schema_part&) const = default;
};

/// What a database lacks of the schema that its migrations make, or has in another form, and which
/// triggers somebody has added: one line each. Of a table that is missing nothing else is told.
std::vector<std::string> schema_differences(const std::vector<schema_part>& expected,
                                            const std::vector<schema_part>& found);

} // namespace boyd::queue
