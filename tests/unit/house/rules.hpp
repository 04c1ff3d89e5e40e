#pragma once

#include "unit/house/source_tree.hpp"

#include <functional>
#include <string>
#include <vector>

namespace house {

/// Findings as "path:line: what is wrong"; empty when the rule holds.
using findings = std::vector<std::string>;

/// One house rule, with small trees that break it once each: they show that it can fail.
struct rule {
  std::string name;
  std::function<findings(const source_tree&)> check;
  std::vector<source_tree> broken_by;
};

/// Every rule of docs/contributing.md that a machine can check.
std::vector<rule> all_rules();

} // namespace house
