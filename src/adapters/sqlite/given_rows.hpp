#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct sqlite3;
struct sqlite3_context;

namespace boyd::adapters::sqlite {

/// Rows for one statement, as its connection's table `given_rows(c0, c1, …)`, which is in no file:
/// `INSERT … SELECT c0, c1 FROM given_rows`. To take in many rows at once costs a third less than
/// one statement for each. Filled row by row, column by column. One thread: the connection's.
class given_rows {
 public:
  /// The most columns of a row.
  static constexpr std::size_t most_columns = 32;

  given_rows() = default;
  given_rows(const given_rows&) = delete;
  given_rows& operator=(const given_rows&) = delete;

  /// Makes the table known to a connection, which this must outlive. Returns SQLite's result code.
  int attach(sqlite3* db);

  /// Empty, for rows of so many columns.
  given_rows& begin(std::size_t columns);
  given_rows& bind(std::int64_t value);
  given_rows& bind(int value) { return bind(std::int64_t{value}); }
  /// The text must outlive the statement.
  given_rows& bind(std::string_view text);
  given_rows& bind(const std::string& text) { return bind(std::string_view{text}); }
  /// One that nobody else keeps.
  given_rows& bind(std::string&& text) {
    return bind(std::string_view{kept_.emplace_back(std::move(text))});
  }
  given_rows& bind(utc_time t) { return bind(to_unix_ms(t)); }
  given_rows& bind(const std::optional<utc_time>& t);

  std::size_t size() const noexcept { return values_.size() / columns_; }
  /// The row that the statement was at when it ended: with OR FAIL the first that was refused; all
  /// rows before it were taken in.
  std::size_t reached() const noexcept { return reached_; }

  // For SQLite, while a statement runs.
  void reach(std::size_t row) noexcept { reached_ = row; }
  void give(sqlite3_context* to, std::size_t column) const;

 private:
  enum class kind : std::uint8_t { nothing, integer, text };
  struct cell {
    kind is = kind::nothing;
    std::int64_t number = 0;
    std::string_view text;
  };

  std::size_t columns_ = 1;
  std::vector<cell> values_;
  std::deque<std::string> kept_; ///< texts of `values_`
  std::size_t reached_ = 0;
};

} // namespace boyd::adapters::sqlite
