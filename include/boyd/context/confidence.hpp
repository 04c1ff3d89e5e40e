#pragma once

#include "boyd/context/item.hpp"

#include <cstdint>
#include <string_view>

/// How much is thought of an item when items are ranked (docs/skills.md). Pure.
namespace boyd::context {

enum class learning_method : std::uint8_t {
  linear, ///< a step up for each success, a longer one down for each failure
  ema,    ///< the share of successes, in which the latest ones weigh most
  bandit, ///< drawn from what is known of that share, so that what is known little has its turn
};

std::string_view name_of(learning_method m) noexcept;

struct confidence_rule {
  learning_method method = learning_method::linear;
  std::uint64_t seed = 0; ///< of the run; `bandit` alone looks at it

  bool operator==(const confidence_rule&) const = default;
};

/// Of a run; the record of the run names it.
std::uint64_t seed_of(std::string_view dispatch_id);

/// 0 to 1; the same for the same arguments. An item that no run has tried has the confidence that
/// it began with, or under `bandit` any.
double confidence_of(const item_statistics& s, std::string_view id, const confidence_rule& rule);

/// The next value of `item_statistics::average`.
double next_average(const item_statistics& before, bool good);

} // namespace boyd::context
