#include "integrity.hpp"

#include "connection.hpp"

#include <sqlite3.h>

namespace boyd::adapters {

result<void> check_sqlite_integrity(const std::string& path) {
  try {
    sqlite::connection db(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
    auto question = db.prepare("PRAGMA integrity_check(1)");
    if (!question.step() || question.text(0) != "ok")
      return fail(errc::corrupt, "integrity_check: " + question.text(0), path);
    return {};
  } catch (const sqlite::failure& f) {
    return fail(sqlite::to_error(f, path));
  }
}

} // namespace boyd::adapters
