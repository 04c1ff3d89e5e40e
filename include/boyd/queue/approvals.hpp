#pragma once

#include "boyd/ports/approval_operations.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the stores share about the inbox: deciding is here, keeping is theirs.
namespace boyd::queue {

/// A person can read no more; what is longer is not asked for.
inline constexpr std::size_t most_shown_bytes = std::size_t{128} << 10;
/// Of any other text of a request.
inline constexpr std::size_t most_approval_text = 4096;
/// approval_matter::before_sha256 begins with it where only the files that a command names are
/// bound, not all of the workspace.
inline constexpr std::string_view unbound_mark = "unbound:";
/// Open requests of one database.
inline constexpr std::uint64_t most_open_approvals = 10'000;
/// Lines of one request's trail; further attempts are counted.
inline constexpr std::int64_t most_trail_lines = 200;
inline constexpr milliseconds longest_approval = std::chrono::hours{24 * 30};

std::string_view name_of(store::approval_state s) noexcept;
std::string_view name_of(store::approval_outcome o) noexcept;
/// An unknown name is nothing.
std::optional<store::approval_state> approval_state_from(std::string_view name) noexcept;
std::optional<store::approval_outcome> approval_outcome_from(std::string_view name) noexcept;

/// SHA-256 of the canonical form: one JSON object, members in alphabetical order, no blanks.
std::string approval_hash(const std::string& approval_id, const store::approval_matter& matter,
                          utc_time expires_at);
/// The same of the matter alone: what tells two requests of one dispatch apart.
std::string matter_hash(const store::approval_matter& matter);

bool is_open(store::approval_state s) noexcept;

/// Whether the matter that `earlier` (of the same dispatch and matter) is about need not be asked
/// for again by a run with `fence`.
bool answers_again(const store::approval& earlier, utc_time now) noexcept;

/// What is to be written: the row as it is afterwards, and a line of its trail.
struct approval_step {
  store::approval row;
  store::approval_line line;
  store::approval_outcome outcome = store::approval_outcome::accepted;
  bool repeated = false; ///< the very request was carried out before: nothing is written
};

/// A new request.
approval_step begin_approval(const store::ask_approval& op, utc_time now);
/// The run of `op` takes over a request that was held; a rejected one stays as it is.
approval_step adopt_approval(store::approval row, const store::ask_approval& op, utc_time now);

/// `run_lives`: the dispatch runs under the row's fence.
approval_step decide_approval(store::approval row, bool run_lives, const store::decide_approval& op,
                              utc_time now);
approval_step use_approval(store::approval row, bool run_lives, const store::use_approval& op,
                           utc_time now);
/// Of an open request.
approval_step withdraw_approval(store::approval row, const store::withdraw_approvals& op,
                                utc_time now);

/// Ends what has expired or lost its run; nothing when it stays as it is.
std::optional<approval_step> end_approval(const store::approval& row, bool run_lives, utc_time now);

/// The row as it has to be taken at `now`: end_approval without a line.
store::approval seen_at(store::approval row, bool run_lives, utc_time now);

} // namespace boyd::queue
