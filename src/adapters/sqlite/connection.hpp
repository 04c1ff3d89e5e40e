#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "given_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace boyd::adapters::sqlite {

/// What SQLite reported; stays inside this adapter.
class failure : public std::runtime_error {
 public:
  failure(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// The extended result code.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// The port's error for a result code.
error to_error(const failure& f, const std::string& path);

/// One use of a prepared statement: binds in order, steps, resets itself. The text bound must
/// outlive the statement's use.
class statement {
 public:
  explicit statement(sqlite3_stmt* s) noexcept : s_(s) {}
  ~statement();
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;
  statement(statement&& other) noexcept;
  statement& operator=(statement&&) = delete;

  statement& bind(std::int64_t value);
  statement& bind(int value) { return bind(std::int64_t{value}); }
  statement& bind(std::string_view text);
  statement& bind(const std::string& text) { return bind(std::string_view{text}); }
  statement& bind(std::string&& text) = delete; ///< it would be gone at the statement's use
  statement& bind(const char* text) { return bind(std::string_view{text}); }
  statement& bind(utc_time t) { return bind(to_unix_ms(t)); }
  statement& bind(const std::optional<utc_time>& t);

  /// True while there is a row.
  bool step();
  /// Steps to the end.
  void run();
  /// As `run`; false when a constraint refused the statement, which then changed nothing.
  bool run_unless_refused();
  /// Ready for the next bindings.
  void rewind();

  std::int64_t integer(int column) const;
  std::string text(int column) const;
  /// Valid until the next step.
  std::string_view view(int column) const;
  bool null(int column) const;
  utc_time time(int column) const { return from_unix_ms(integer(column)); }
  std::optional<utc_time> optional_time(int column) const;

 private:
  sqlite3_stmt* s_;
  int next_ = 1;
};

/// One open database with its prepared statements.
class connection {
 public:
  /// `flags` as sqlite3_open_v2 takes them. The first connection of the process switches off
  /// SQLite's counting of memory, which takes a lock at every allocation.
  connection(const std::string& path, int flags);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// A cached prepared statement; the same text must not be in use twice at a time. Every parameter
  /// is to be bound at each use: what was bound before is still there, and may point to nothing.
  statement prepare(std::string_view sql);
  /// The same for a text that lives as long as the program, found again by its address.
  statement fixed(const char* sql);
  /// The rows for the next statement that reads given_rows: to be filled anew for each.
  given_rows& rows() noexcept { return rows_; }
  /// Any number of statements without parameters.
  void execute(const std::string& sql);
  /// Rows changed by the latest statement.
  std::int64_t changes() const;
  std::int64_t last_id() const;
  /// A transaction is open.
  bool in_transaction() const;
  /// SQLite's own opinion whether the open file still has its name.
  bool has_moved() const;
  /// The end of this connection copies the write-ahead log into the database and removes it, as
  /// SQLite does by itself. Only where nothing has failed: SQLite 3.40 opens the log's index anew
  /// when it could not before, takes an index that it may only read for empty, and removes the log
  /// with all that is in it. Else the log is left to who opens the database next.
  void empty_log_at_close();

 private:
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  sqlite3_stmt* compile(std::string_view sql);
  int leave_log_at_close(bool leave);

  given_rows rows_;
  sqlite3* db_ = nullptr;
  /// Looked up by view: no copy of the text on the hot path.
  std::unordered_map<std::string, sqlite3_stmt*, text_hash, std::equal_to<>> cache_;
  /// Entries of cache_ by the address of their text.
  std::unordered_map<const char*, sqlite3_stmt*> by_address_;
};

} // namespace boyd::adapters::sqlite
