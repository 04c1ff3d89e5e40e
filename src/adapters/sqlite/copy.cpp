#include "copy.hpp"

#include "integrity.hpp"

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <unistd.h>

namespace boyd::adapters {

namespace {

/// For a checkpoint of the owner, which lasts a moment.
constexpr int busy_ms = 10'000;
constexpr int all_pages = -1;

using handle = std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)>;

error trouble(sqlite3* db, int code, const std::string& path) {
  const auto text = std::string(db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db));
  switch (code & 0xFF) {
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return {errc::corrupt, "the database is damaged: " + text, path, "see: boyd doctor"};
  case SQLITE_FULL:
    return {errc::no_space, "the disk is full", path, "free some space, or choose another place"};
  default:
    return {errc::store_unavailable, "cannot copy the database: " + text, path,
            "try again; see: boyd doctor"};
  }
}

result<handle> open(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  handle db(raw, &sqlite3_close_v2);
  if (code != SQLITE_OK)
    return fail(trouble(raw, code, path));
  sqlite3_busy_timeout(raw, busy_ms);
  return db;
}

/// All pages in one step: what is written meanwhile belongs to a later moment.
result<void> copy_pages(const std::string& from, const std::string& to) {
  auto source = open(from, SQLITE_OPEN_READONLY);
  if (!source)
    return fail(source.error());
  auto copy = open(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!copy)
    return fail(copy.error());
  auto* backup = sqlite3_backup_init(copy->get(), "main", source->get(), "main");
  if (backup == nullptr)
    return fail(trouble(copy->get(), sqlite3_errcode(copy->get()), to));
  const int code = sqlite3_backup_step(backup, all_pages);
  const int end = sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE || end != SQLITE_OK)
    return fail(trouble(nullptr, code == SQLITE_DONE ? end : code, from));
  // One file: what is restored must not need a write-ahead log beside it.
  if (sqlite3_exec(copy->get(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return fail(trouble(copy->get(), sqlite3_errcode(copy->get()), to));
  return {};
}

} // namespace

result<void> copy_sqlite_database(const std::string& from, const std::string& to) {
  std::error_code failed;
  if (!std::filesystem::exists(from, failed))
    return fail(errc::not_found, "no such database", from);
  if (std::filesystem::exists(to, failed))
    return fail(errc::already_exists, "the file already exists", to);
  auto copied = copy_pages(from, to);
  if (copied)
    copied = check_sqlite_integrity(to);
  if (!copied)
    ::unlink(to.c_str());
  return copied;
}

} // namespace boyd::adapters
