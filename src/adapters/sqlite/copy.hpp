#pragma once

#include "boyd/core/result.hpp"

#include <string>

namespace boyd::adapters {

/// Copies a database as it is at one moment, by SQLite's backup, also while another process writes
/// to it, which goes on meanwhile. The copy is one file, made anew, and passes integrity_check. No
/// connection of this process may have either open (FAULTS.md, fact 1). Blocking. Errors:
/// `not_found`, `already_exists` for the copy, `corrupt`, `store_unavailable`, `no_space`.
result<void> copy_sqlite_database(const std::string& from, const std::string& to);

} // namespace boyd::adapters
