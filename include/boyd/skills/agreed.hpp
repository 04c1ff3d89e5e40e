#pragma once

#include "boyd/skills/memory_policy.hpp"

#include <string>
#include <vector>

/// What may be done of what a person has agreed to (docs/memory.md). Pure.
namespace boyd::skills {

/// A decision as a person was shown it.
struct shown_decision {
  std::string id;
  std::string action;
};

/// One that is another by now.
struct changed_decision {
  std::string id;
  std::string path; ///< the id, when nobody knows the item any more
  std::string shown;
  std::string now;

  bool operator==(const changed_decision&) const = default;
};

struct agreed_decisions {
  std::vector<policy_decision> done; ///< in the order in which they were shown
  std::vector<changed_decision> changed;
};

/// `now`: what the policy says at this moment. What was not shown is not done; to keep an item is
/// nothing to do.
agreed_decisions agreed(const std::vector<shown_decision>& shown,
                        const std::vector<policy_decision>& now);

} // namespace boyd::skills
