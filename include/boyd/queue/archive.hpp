#pragma once

#include "boyd/ports/store_archive.hpp"
#include "boyd/queue/dispatch_columns.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::queue {

/// Everything that a store holds, but for facts about the store itself (scope `store`). The first
/// section, "dispatches", joins a dispatch with its latest result and its lease.
const std::vector<store::archive_section>& archive_sections();

/// The scope of facts that stay with their store.
inline constexpr std::string_view own_facts = "store";

/// How many columns of "dispatches" are of the request (its ids, what was asked for, its prompt);
/// those of the lease and of the result follow.
inline constexpr std::size_t request_columns = 3 + request_column_count + 1;
inline constexpr std::size_t lease_columns = 5;

/// A column's value in the form of an archive, whatever a database did to its text: JSON in one
/// form, texts as UTF-8.
std::string archive_value(const store::archive_column& column, std::string_view text);

/// One line for a checksum: unambiguous, the same for equal rows.
std::string line_of(const store::archive_row& row);

} // namespace boyd::queue
