#pragma once

#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What the log of facts is told of decisions about skills (docs/skills.md). Pure.
namespace boyd::skills {

/// Bytes of a SKILL.md that become usable.
struct approval {
  std::string kernel_id;
  std::string name;
  std::int64_t version = 1;
  std::string hash;   ///< SHA-256 of the bytes
  std::string source; ///< id of the context that it comes from
  std::string candidate{};
  double confidence = 0;
  std::int64_t uses = 0;
  std::string by;
  std::string reason{};
};

/// `promoted_to`, then `derived_from`.
std::vector<graph::edge> facts_of(const approval& a, utc_time at);

/// A decision about a skill or a candidate.
struct decided {
  std::string about;  ///< its id
  std::string action; ///< enable, disable, rollback, reject or defer
  std::string decision_id;
  std::string by;
  std::string reason{};
  std::int64_t evidence = 0; ///< of a candidate: references to its item
};

/// `managed_by`.
graph::edge fact_of(const decided& d, utc_time at);

} // namespace boyd::skills
