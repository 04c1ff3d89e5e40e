#pragma once

#include "boyd/queue/transitions.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

/// The columns in which databases keep dispatches, each described once: from here come their lists
/// in SQL, what is bound, how it is read, and the archive of a migration. What orders dispatches
/// and who has them (keys, agents, leases) is each database's own.
namespace boyd::queue {

/// How a database may keep a column.
struct column_form {
  const char* nothing = nullptr; ///< the text that says nothing, instead of which NULL will do
  bool json = false;
  bool node = false;         ///< a node's name, instead of which a number will do
  bool as_requested = false; ///< NULL where it is what the request says
  bool later = false;        ///< as in a new row, where a dispatch ended at its first attempt
};

/// A column, and the member of a queue_row, its dispatch or its outcome that the column holds.
template <class Owner, class Value>
struct column {
  constexpr column(const char* called, Value Owner::*held, column_form kept = {})
      : name(called), member(held), form(kept) {}

  template <class Row>
  constexpr auto& of(Row& row) const {
    if constexpr (std::is_same_v<Owner, queue_row>)
      return row.*member;
    else if constexpr (std::is_same_v<Owner, dispatch>)
      return row.d.*member;
    else
      return row.d.outcome.*member;
  }

  using value = Value;
  const char* name;
  Value Owner::*member;
  column_form form;
};

/// What was asked for, but for the dispatch's id and its agent.
inline constexpr std::tuple columns_of_request{
    column("cycle_id", &dispatch::cycle_id),
    column("priority", &dispatch::priority),
    column("max_attempts", &dispatch::max_attempts),
    column("created_at", &dispatch::created_at),
    column("not_before", &dispatch::not_before),
    column("metadata", &dispatch::metadata_json, {.nothing = "{}", .json = true})};

/// What the latest ended attempt left.
inline constexpr std::tuple columns_of_result{
    column("status", &dispatch::status), // the first: see read_status
    column("attempt", &dispatch::attempt),
    column("rescues", &dispatch::rescues, {.later = true}),
    column("fence", &dispatch::fence),
    column("settled_fence", &queue_row::settled_fence),
    column("not_before", &dispatch::not_before, {.as_requested = true, .later = true}),
    column("last_owner", &queue_row::last_owner, {.node = true}),
    column("started_at", &dispatch::started_at),
    column("finished_at", &dispatch::finished_at),
    column("execution", &run_outcome::execution, {.nothing = "none"}),
    column("claim", &run_outcome::claim, {.nothing = "none"}),
    column("verification", &run_outcome::verification, {.nothing = "none"}),
    column("failure_class", &run_outcome::failure, {.nothing = "none"}),
    column("exit_code", &run_outcome::exit_code),
    column("output_cut", &run_outcome::output_cut),
    column("session_id", &run_outcome::session_id, {.nothing = ""}),
    column("summary", &run_outcome::summary, {.nothing = ""}),
    column("error", &run_outcome::error, {.nothing = ""}),
    column("usage", &run_outcome::usage, {.nothing = ""}),
    column("attempts", &dispatch::attempts_json, {.nothing = "[]", .json = true, .later = true})};

/// Large texts: the last column of each table, read only where it is asked for.
inline constexpr column prompt_column("prompt", &dispatch::prompt);
inline constexpr column output_column("output", &run_outcome::output, {.nothing = ""});

inline constexpr int request_column_count = std::tuple_size_v<decltype(columns_of_request)>;
inline constexpr int result_column_count = std::tuple_size_v<decltype(columns_of_result)>;

/// Calls `f` with each column, in order.
template <class Columns, class F>
constexpr void for_each_column(const Columns& columns, F f) {
  std::apply([&f](const auto&... each) { (f(each), ...); }, columns);
}

/// The place of a column; no constant where there is none of that name.
template <class Columns>
constexpr std::size_t place_of(const Columns& columns, std::string_view name) {
  std::size_t place = 0;
  std::size_t found = std::tuple_size_v<Columns>;
  for_each_column(columns, [&](const auto& c) {
    found = c.name == name ? place : found;
    ++place;
  });
  return found < place ? found : throw std::out_of_range("no such column");
}

/// `text(column)` for each, separated by commas.
template <class Columns, class Text>
std::string listed(const Columns& columns, Text text) {
  std::string all;
  for_each_column(columns,
                  [&](const auto& c) { all += (all.empty() ? "" : ", ") + std::string(text(c)); });
  return all;
}

inline auto enumerator(std::string_view name, dispatch_status) noexcept {
  return dispatch_status_from(name);
}
inline auto enumerator(std::string_view name, execution_verdict) noexcept {
  return execution_verdict_from(name);
}
inline auto enumerator(std::string_view name, claim_verdict) noexcept {
  return claim_verdict_from(name);
}
inline auto enumerator(std::string_view name, verification_verdict) noexcept {
  return verification_verdict_from(name);
}
inline auto enumerator(std::string_view name, failure_class) noexcept {
  return failure_class_from(name);
}

/// Reads a word into the member that a column holds; see read_word. What has no known status has
/// failed.
template <class Owner, class Enum>
void read_enumerator(const column<Owner, Enum>& c, std::string_view word, queue_row& row) {
  auto& to = c.of(row);
  auto otherwise = to;
  if constexpr (std::is_same_v<Enum, dispatch_status>)
    otherwise = dispatch_status::failed;
  to = read_word(
      row, c.name, word, [&](std::string_view name) { return enumerator(name, otherwise); },
      otherwise);
}

/// Called when all columns of a result are read: an unknown status is why it has failed.
inline void read_status(std::string_view word, queue_row& row) {
  if (!dispatch_status_from(word))
    row.d.outcome.error = unknown_status(word);
}

} // namespace boyd::queue
