#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// The rules of docs/queue.md's state machine as pure functions over one row. Every store applies
/// these to the row it holds locked, so that SQLite, PostgreSQL and the simulation cannot drift
/// apart.
namespace boyd::queue {

/// Earlier attempts that a row remembers; the oldest fall out.
inline constexpr std::size_t max_attempt_records = 20;
/// So much of the output of an earlier attempt is remembered, its beginning.
inline constexpr std::size_t attempt_output_bytes = std::size_t{16} << 10;
/// due_agents counts no further than this, so that a poll costs the same under any backlog.
inline constexpr std::uint64_t due_count_cap = 1000;
/// Shortest prefix that find_dispatch takes.
inline constexpr std::size_t min_id_prefix = 6;

/// A dispatch with what the store alone needs.
struct queue_row {
  dispatch d;
  std::int64_t settled_fence =
      0;                  ///< the newest fence that was settled: tells a repeat from a theft
  std::string last_owner; ///< the node of the latest claim, kept after its lease
  std::string damage{};   ///< what reading the row did not understand; see read_word
};

/// Adds to `row.damage` that `column` holds a word that this version does not know.
void note_unknown(queue_row& row, std::string_view column, std::string_view word);

/// The enumerator that `word`, of `column`, names by `from`; `otherwise` when it names none. A word
/// that is not known (a newer version's, or a fault's) is noted in `row`.
template <class Enum, class From>
Enum read_word(queue_row& row, std::string_view column, std::string_view word, From from,
               Enum otherwise) {
  const auto value = from(word);
  if (!value && !word.empty())
    note_unknown(row, column, word);
  return value.value_or(otherwise);
}

/// A new pending row; texts are made valid UTF-8.
queue_row new_row(const dispatch_spec& spec, utc_time now);

/// pending → running for `node_id`: fence and attempt grow, the old outcome is cleared (it stands
/// in attempts_json). A row that this version cannot read whole (`damage`, metadata that is no
/// object, earlier attempts that are no list) must not run: see refusal_of.
void claim_row(queue_row& row, const std::string& node_id, milliseconds lease, utc_time now);

/// How a dispatch that was just claimed must be settled without running: as failed, with what is
/// wrong in which column. Nothing: it can run. claim_row leaves it as the row's outcome, which is
/// empty otherwise.
std::optional<run_outcome> refusal_of(const dispatch& claimed);

/// Ends the running attempt when `node_id` holds the row under `item.fence`; otherwise nothing
/// changes. The same fence again: `already_settled`; a fence that was taken away, or that is
/// another node's: `stale`. Reads status, fence, lease_owner, settled_fence and last_owner.
settle_result settle_row(queue_row& row, const std::string& node_id, const settlement& item,
                         utc_time now);

/// running → pending without counting the attempt; beyond `max_rescues` → failed. Returns true when
/// the row was given up (poison).
bool rescue_row(queue_row& row, int max_rescues, utc_time now);

/// An operator's retry. Final → pending: `accepted`; pending: `already_settled`; running: `stale`.
store::retry_dispatch::reply retry_row(queue_row& row, utc_time now);

/// An operator's cancel. Pending → cancelled: `accepted`; final: `already_settled`; running:
/// nothing changes, `stale` with fence and owner. `cause` stands in the row's error; may be empty.
store::cancel_dispatch::reply cancel_row(queue_row& row, utc_time now, std::string_view cause = {});

/// The error of a row whose status is a word that this version does not know: it is shown as failed
/// and never claimed; an operator's retry gives it back.
std::string unknown_status(std::string_view word);

/// Whether `node_id` still holds the row under `fence`.
bool holds(const queue_row& row, const std::string& node_id, std::int64_t fence);

/// The stable name of where an attempt went, as attempts_json has it.
std::string_view name_of(settle_to to) noexcept;
std::optional<settle_to> settle_to_from(std::string_view name) noexcept;

/// A JSON object that every store takes: bounded depth, no \u0000.
bool is_metadata(std::string_view text);

/// What is wrong with an operation's arguments (empty ids, malformed or too deep metadata, a slot
/// closed as open, a prefix too short, …); nothing when it may run. A store answers it for that
/// operation alone.
std::optional<error> check_operation(const store::operation& op);

} // namespace boyd::queue
