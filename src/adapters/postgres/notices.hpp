#pragma once

#include <string>

namespace boyd::adapters::postgres {

/// Writes what the server or libpq says beside answers (a NOTICE or WARNING, possibly of several
/// lines) to the log, as one line that names the database. libpq itself would print it to standard
/// error. Any thread; never throws.
void log_notice(const std::string& place, const char* text) noexcept;

} // namespace boyd::adapters::postgres
