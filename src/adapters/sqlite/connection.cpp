#include "connection.hpp"

#include <sqlite3.h>

#include <cerrno>

namespace boyd::adapters::sqlite {

namespace {

[[noreturn]] void raise(sqlite3* db, int code) {
  if (db == nullptr)
    throw failure(code, sqlite3_errstr(code));
  const int extended = sqlite3_extended_errcode(db);
  // Where it is not a page of the database for which there was no room, SQLite does not say so.
  // After an fsync that failed, a commit stays in doubt, whatever the reason.
  const bool full = (extended & 0xff) == SQLITE_IOERR && extended != SQLITE_IOERR_FSYNC &&
                    extended != SQLITE_IOERR_DIR_FSYNC && sqlite3_system_errno(db) == ENOSPC;
  throw failure(full ? SQLITE_FULL : extended, sqlite3_errmsg(db));
}

/// Refused when SQLite is in use already: then it goes on counting, which is merely slower.
void configure_library() {
  static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(configured);
}

} // namespace

error to_error(const failure& f, const std::string& path) {
  const std::string text = f.what();
  switch (f.code() & 0xff) {
  case SQLITE_FULL:
    return {errc::no_space, "the database cannot grow: " + text, path, "free space on its disk"};
  case SQLITE_IOERR:
    return {errc::io_error, "the database file failed: " + text, path, "check the disk"};
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    // A read that failed once (EIO) is called corruption by SQLite as well (os_unix.c, unixRead):
    // only the check tells whether the file itself is damaged.
    return {
        errc::corrupt, "the database is unreadable or damaged: " + text, path,
        "try again and check the disk; if the error stays, stop the node and check with: sqlite3 " +
            path + " 'PRAGMA integrity_check'; only if that finds damage, restore a backup"};
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return {errc::locked, "another process holds the database: " + text, path,
            "end the other process that writes to it"};
  case SQLITE_CANTOPEN:
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_NOLFS:
    return {errc::store_unavailable, "cannot open or write the database: " + text, path,
            "check the path and its permissions"};
  case SQLITE_CONSTRAINT:
  case SQLITE_TOOBIG:
  case SQLITE_MISMATCH:
  case SQLITE_AUTH:
  case SQLITE_ERROR: // no such table, or a trigger's word
    return {errc::refused, "the database refused a statement: " + text, path,
            "see docs/queue.md, When the database refuses; boyd doctor compares the tables"};
  default:
    return {errc::bug, "SQLite refused a statement: " + text, path, {}};
  }
}

statement::~statement() {
  if (s_ != nullptr)
    sqlite3_reset(s_);
}

statement::statement(statement&& other) noexcept : s_(other.s_), next_(other.next_) {
  other.s_ = nullptr;
}

statement& statement::bind(std::int64_t value) {
  if (const int rc = sqlite3_bind_int64(s_, next_++, value); rc != SQLITE_OK)
    raise(sqlite3_db_handle(s_), rc);
  return *this;
}

statement& statement::bind(std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  const int rc = sqlite3_bind_text64(s_, next_++, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (rc != SQLITE_OK)
    raise(sqlite3_db_handle(s_), rc);
  return *this;
}

statement& statement::bind(const std::optional<utc_time>& t) {
  if (t)
    return bind(*t);
  if (const int rc = sqlite3_bind_null(s_, next_++); rc != SQLITE_OK)
    raise(sqlite3_db_handle(s_), rc);
  return *this;
}

bool statement::step() {
  const int rc = sqlite3_step(s_);
  if (rc == SQLITE_ROW)
    return true;
  if (rc == SQLITE_DONE)
    return false;
  raise(sqlite3_db_handle(s_), rc);
}

void statement::run() {
  while (step())
    continue;
}

bool statement::run_unless_refused() {
  const int rc = sqlite3_step(s_);
  if (rc == SQLITE_DONE)
    return true;
  // A row that stands already; what a trigger or a check refuses is no such row.
  const int why = sqlite3_extended_errcode(sqlite3_db_handle(s_));
  const bool is_double = why == SQLITE_CONSTRAINT_UNIQUE || why == SQLITE_CONSTRAINT_PRIMARYKEY ||
                         why == SQLITE_CONSTRAINT_ROWID;
  if (is_double)
    return false;
  raise(sqlite3_db_handle(s_), rc);
}

void statement::rewind() {
  sqlite3_reset(s_);
  next_ = 1;
}

std::int64_t statement::integer(int column) const {
  return sqlite3_column_int64(s_, column);
}

std::string_view statement::view(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(s_, column));
  if (data == nullptr)
    return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(s_, column))};
}

std::string statement::text(int column) const {
  return std::string{view(column)};
}

bool statement::null(int column) const {
  return sqlite3_column_type(s_, column) == SQLITE_NULL;
}

std::optional<utc_time> statement::optional_time(int column) const {
  if (null(column))
    return std::nullopt;
  return time(column);
}

connection::connection(const std::string& path, int flags) {
  configure_library();
  int rc = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr);
  if (rc == SQLITE_OK) {
    sqlite3_extended_result_codes(db_, 1);
    rc = leave_log_at_close(true);
  }
  if (rc == SQLITE_OK)
    rc = rows_.attach(db_);
  if (rc == SQLITE_OK)
    return;
  const failure f(rc, db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(rc));
  sqlite3_close(db_);
  throw f;
}

connection::~connection() {
  for (const auto& [sql, s] : cache_)
    sqlite3_finalize(s);
  sqlite3_close(db_);
}

int connection::leave_log_at_close(bool leave) {
  return sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave ? 1 : 0, nullptr);
}

void connection::empty_log_at_close() {
  leave_log_at_close(false);
}

sqlite3_stmt* connection::compile(std::string_view sql) {
  const auto it = cache_.find(sql);
  if (it != cache_.end())
    return it->second;
  std::string key{sql};
  sqlite3_stmt* s = nullptr;
  const int rc = sqlite3_prepare_v3(db_, key.c_str(), static_cast<int>(key.size()) + 1,
                                    SQLITE_PREPARE_PERSISTENT, &s, nullptr);
  if (rc != SQLITE_OK)
    raise(db_, rc);
  cache_.emplace(std::move(key), s);
  return s;
}

statement connection::prepare(std::string_view sql) {
  return statement{compile(sql)};
}

statement connection::fixed(const char* sql) {
  auto& s = by_address_[sql];
  if (s == nullptr)
    s = compile(sql);
  return statement{s};
}

void connection::execute(const std::string& sql) {
  if (const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr); rc != SQLITE_OK)
    raise(db_, rc);
}

std::int64_t connection::changes() const {
  return sqlite3_changes(db_);
}

std::int64_t connection::last_id() const {
  return sqlite3_last_insert_rowid(db_);
}

bool connection::in_transaction() const {
  return sqlite3_get_autocommit(db_) == 0;
}

bool connection::has_moved() const {
  int moved = 0;
  const int rc = sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return rc == SQLITE_OK && moved != 0;
}

} // namespace boyd::adapters::sqlite
