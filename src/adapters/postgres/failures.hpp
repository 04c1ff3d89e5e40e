#pragma once

#include "boyd/core/result.hpp"

#include <string>
#include <string_view>

/// What the server and libpqxx say of failures, in Boyd's words. Threads: any.
namespace boyd::adapters::postgres {

/// By SQLSTATE class (PostgreSQL manual, appendix A).
errc code_of(const std::string& state);

/// The same with what the server said, and what to do about it.
error error_of(const std::string& state, std::string_view said);

/// A statement that this session has prepared is another session's, or nobody's.
bool is_foreign_session(std::string_view state);

/// PgBouncer's own word for what it does not take in its mode.
bool is_pooling(std::string_view said);

/// Of a pooler that does not keep a session together; `said` by it, or empty.
error pooler_error(errc code, const std::string& said);

/// One line of what libpqxx or libpq says, without the hints that libpq puts on lines of their own.
std::string one_line(std::string_view text);

/// Of a connection that was lost, libpqxx may only say which of its own calls came too late.
std::string lost_text(std::string_view said);

} // namespace boyd::adapters::postgres
