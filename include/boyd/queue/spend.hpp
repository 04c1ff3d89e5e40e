#pragma once

#include "boyd/ports/dispatch_store.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What the stores share about budgets: deciding is here, keeping is theirs.
namespace boyd::queue {

/// No call uses or costs more (a million dollars, in millionths): sums of rows then fit.
inline constexpr std::int64_t most_of_a_call = 1'000'000'000'000;
/// More scopes than agent, kernel and node are a mistake.
inline constexpr std::size_t most_scopes = 16;

/// The names of scopes.
std::string agent_scope(const std::string& kernel_id, const std::string& agent_id);
std::string node_scope(const std::string& node_id);

/// What a scope has used up in one day, what is reserved included. Never negative; a sum that does
/// not fit is the greatest number.
struct spend_total {
  std::int64_t tokens = 0;
  std::int64_t cost = 0;

  bool operator==(const spend_total&) const = default;
};

/// The answer to `op` whose call stands already (or not), with the totals of its scopes in their
/// order. When it is granted and did not stand, the totals are changed by it.
store::reserve_spend::reply decide_spend(const store::reserve_spend& op, bool stands,
                                         std::vector<spend_total>& totals);

/// Puts `used` in the place of `reserved`.
void settle_total(spend_total& total, const spend_total& reserved, const spend_total& used);

/// What one call counts for.
spend_total counted(const store::usage_counts& usage);

/// Whose call it is, for the question whether that is still under way.
struct call_holder {
  std::string dispatch_id;
  std::int64_t fence = 0;
  std::string cycle_id; ///< of a planner or reducer, which has no dispatch; empty: an agent's
};
call_holder holder_of(const store::spend_call& call);

/// What becomes of a call that a person releases at `now`; `running`: its holder is under way. The
/// reply has the call as it is to be written; it is unchanged where nothing is given back.
store::release_spend::reply decide_release(const store::release_spend& op, store::spend_call call,
                                           bool running, utc_time now);

std::vector<std::string> scopes_of(const store::reserve_spend& op);

} // namespace boyd::queue
