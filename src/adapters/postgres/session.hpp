#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::adapters::postgres {

/// What the database or the connection reported, as the port's error; stays inside this adapter.
struct failure {
  error why;
  bool connection_lost = false;
  /// Of `run_together`: how many of its questions had been answered; less than 0: what went before
  /// them failed.
  int answered = -1;
};

/// A PostgreSQL array literal, built element by element. Texts are made valid UTF-8.
class array {
 public:
  array& add(std::string_view text);
  array& add(std::int64_t number);
  array& add(const std::optional<utc_time>& t);
  /// NULL for a text that says nothing.
  array& add_unless(std::string_view nothing, std::string_view text);
  bool empty() const noexcept { return empty_; }
  /// "{…}"
  std::string literal() const { return body_ + "}"; }

 private:
  void separate();
  std::string body_ = "{";
  bool empty_ = true;
};

/// The members of an array of texts, from its literal.
std::vector<std::string> members_of(std::string_view literal);

/// Rows of one COPY, in its text format, built field by field. Texts are made valid UTF-8.
class copy_rows {
 public:
  copy_rows& add(std::string_view text);
  copy_rows& add(std::int64_t number);
  copy_rows& add(const std::optional<utc_time>& t);
  copy_rows& add_unless(std::string_view nothing, std::string_view text);
  copy_rows& add_null();
  void end_row();
  std::size_t rows() const noexcept { return rows_; }
  /// Lines, each with its end.
  const std::string& text() const noexcept { return text_; }

 private:
  void separate();
  std::string text_;
  bool fresh_ = true;
  std::size_t rows_ = 0;
};

/// Its lines, without their ends; there is one at least.
std::vector<std::string_view> lines_of(const copy_rows& rows);
/// The fields of such a line.
std::vector<std::optional<std::string>> fields_of(std::string_view line);

/// Parameters of one statement, in order, as text.
class parameters {
 public:
  parameters& add(std::string_view text);
  parameters& add(std::int64_t number);
  parameters& add(const array& a);
  const std::vector<std::string>& values() const noexcept { return values_; }

 private:
  std::vector<std::string> values_;
};

/// A statement with its values.
struct statement {
  std::string sql;
  parameters values;
};

/// The rows of one statement.
class answer {
 public:
  struct impl;
  explicit answer(std::shared_ptr<const impl> data) : data_(std::move(data)) {}

  int rows() const;
  /// Rows changed, for statements that change rows.
  std::int64_t affected() const;
  std::string_view text(int row, int column) const;
  std::int64_t integer(int row, int column) const;
  bool is_null(int row, int column) const;
  utc_time time(int row, int column) const { return from_unix_ms(integer(row, column)); }
  std::optional<utc_time> optional_time(int row, int column) const;

 private:
  std::shared_ptr<const impl> data_;
};

/// So many rows are inserted one by one: COPY takes two more ways to the server and back.
inline constexpr std::size_t few_rows = 4;

/// One connection and at most one transaction on it. A lost connection stays lost: libpqxx's own
/// reconnecting is off (FAULTS.md fact 9). Every member throws `failure`.
///
/// Each way to the server and back costs more than most statements: what needs no answer waits and
/// goes with the next statement that does, or with the commit. What is wrong with it is told by the
/// call that it went with.
class session {
 public:
  explicit session(const postgres_options& options);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  void begin();
  /// Instead of `begin` for statements that write nothing: each is a transaction of its own, which
  /// saves the ways to the server and back for the begin and the end.
  void begin_reading();
  /// The same for one statement that writes, which `run` commits.
  void begin_single();
  /// Error `commit_in_doubt` when the connection is lost meanwhile.
  void commit();
  /// The same, on the way with the next statement, which is a question and is answered behind it;
  /// `commit` follows as ever. Statements after this one are for themselves.
  void commit_with_next();
  /// Never throws.
  void rollback() noexcept;
  /// Inside the transaction; the statement is prepared at its first use.
  answer run(std::string_view sql, const parameters& p = {});
  /// The same with the commit behind it, on one way with it, where something waits to be sent. What
  /// follows commits itself.
  answer run_and_commit(std::string_view sql, const parameters& p);
  /// Several questions on one way to the server and back; their answers in the same order.
  std::vector<answer> run_together(const std::vector<statement>& questions);
  /// The same for a statement whose answer nobody needs: it may wait.
  void later(std::string_view sql, const parameters& p);
  /// Rows into `table`; `columns` separated by commas. By COPY, or row by row when they are few;
  /// may wait. A unique index that refuses a row fails the transaction with errc::already_exists.
  void copy(const std::string& table, std::string_view columns, const copy_rows& rows);
  /// The same for at most `few_rows` of them, row by row; those of their columns whose names
  /// end in `_at` or `_before` are times, and count from the server's own.
  void insert_from_now(const std::string& table, std::string_view columns, const copy_rows& rows);
  /// Several statements without parameters, inside the transaction, at once.
  void script(std::string_view sql);

  /// Later calls are given up a little after the server should have ended them with this timeout;
  /// at first that of the options.
  void answer_within(milliseconds statement_timeout);

  /// Whether another session of the same options has the same process of the server while this one
  /// is open, as behind a transaction pooler. Outside of a transaction.
  bool shares_backend(const postgres_options& options);

  std::string server_version() const;

 private:
  struct impl;
  void configure(const postgres_options& options);
  std::vector<answer> run_each(const std::vector<statement>& questions);

  std::unique_ptr<impl> impl_;
};

/// The options as a libpq connection string, time limits included; contains the password.
result<std::string> connection_string(const postgres_options& options);
/// How the payload of a wake-up begins.
std::string spoken_by(const postgres_options& options);
/// host:port/database of the options, without user and password.
std::string place(const postgres_options& options);

} // namespace boyd::adapters::postgres
