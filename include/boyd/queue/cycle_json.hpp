#pragma once

#include "boyd/core/cycle.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::queue {

/// ["a","b"], as the cycles table keeps its failed agents. Bytes that are not UTF-8 are replaced.
std::string names_to_json(const std::vector<std::string>& names);
/// The inverse; empty for anything else.
std::vector<std::string> names_from_json(std::string_view text);

/// [{"agent_id":…,"status":…,"summary":…}], as the cycles table keeps its agents.
std::string agents_to_json(const std::vector<agent_result>& agents);
/// The inverse; empty for anything else.
std::vector<agent_result> agents_from_json(std::string_view text);

} // namespace boyd::queue
