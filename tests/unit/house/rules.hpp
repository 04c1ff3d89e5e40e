#pragma once

#include "unit/house/source_tree.hpp"

#include <functional>
#include <string>
#include <vector>

namespace house {

/// Findings as "path:line: what is wrong"; empty when the rule holds.
using findings = std::vector<std::string>;

/// One house rule. `broken_by` is a small tree that breaks it: what shows that the rule can fail.
struct rule {
  std::string name;
  std::function<findings(const source_tree&)> check;
  source_tree broken_by;
};

/// Every rule of docs/contributing.md that a machine can check.
std::vector<rule> all_rules();

} // namespace house
