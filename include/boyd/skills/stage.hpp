#pragma once

#include "boyd/context/item.hpp"
#include "boyd/core/time.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

/// What becomes of context that proves useful (docs/skills.md). Pure.
namespace boyd::skills {

/// Where an item stands. It is derived at every look and stored nowhere.
enum class stage : std::uint8_t { archived, context, bank, skill_candidate };

std::string_view name_of(stage s) noexcept;

/// The numbers of the table; a replay of the policy takes others.
struct stage_rules {
  std::int64_t candidate_referenced = 5;
  double candidate_useful_rate = 0.75;
  double candidate_confidence = 0.7;
  milliseconds candidate_idle = std::chrono::hours{24 * 7}; ///< used within
  std::int64_t bank_referenced = 3;
  std::int64_t bank_success = 1;
  double bank_useful_rate = 0.6;
  double bank_confidence = 0.6;
  milliseconds archive_idle = std::chrono::hours{24 * 30}; ///< idle for longer
  double archive_confidence = 0.25;                        ///< below

  bool operator==(const stage_rules&) const = default;
};

struct stage_verdict {
  stage where = stage::context;
  std::string_view reason;
  double score = 0; ///< 0.5·confidence + 0.3·ln(1 + referenced) + 0.2·min(1, uses/10)

  bool operator==(const stage_verdict&) const = default;
};

/// Of any statistics, whatever they say. The rules are tried in the order of docs/skills.md's
/// table.
stage_verdict stage_of(const context::item_statistics& s, utc_time now,
                       const stage_rules& rules = {});

/// Whether the item outlives the run: its stage is `bank` or above. Does not depend on the time.
bool is_banked(const context::item_statistics& s, const stage_rules& rules = {});

} // namespace boyd::skills
