#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

/// So many cycles are owed their commits at most; the oldest ones are given up first.
inline constexpr std::size_t most_owed = 256;

/// A recorded cycle whose commits (docs/adr/0012) failed: they are made up for.
struct owed_commits {
  std::string cycle_id;
  cycle_status status = cycle_status::running; ///< as the row has it
  utc_time ended{};                            ///< of the row; milliseconds
  bool before = false;                         ///< `pre-cycle`, too; the `cycle` commit always

  bool operator==(const owed_commits&) const = default;
};

/// The scope of the store's facts that keep them, by node_id: each node has a repository of its
/// own.
std::string owed_scope(std::string_view kernel_id);

/// As the text of a fact, the oldest cycle first; empty when there is none.
std::string render_owed(const std::vector<owed_commits>& owed);

/// The text of a fact; what is none in it is left out.
std::vector<owed_commits> parse_owed(std::string_view text);

/// Puts a cycle last, in place of an older entry of the same cycle; returns how many were given up
/// to stay within most_owed.
std::size_t add_owed(std::vector<owed_commits>& owed, owed_commits cycle);

} // namespace boyd::state
