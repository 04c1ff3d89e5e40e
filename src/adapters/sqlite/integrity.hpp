#pragma once

#include "boyd/core/result.hpp"

#include <string>

namespace boyd::adapters {

/// SQLite's own examination (`PRAGMA integrity_check`) of a database that nobody has open: one
/// connection per file (FAULTS.md, fact 1). Repairs what a crash left, as every opening does.
/// `corrupt` with the first finding; `store_unavailable` when it cannot be opened. Blocking.
result<void> check_sqlite_integrity(const std::string& path);

} // namespace boyd::adapters
