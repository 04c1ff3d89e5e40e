#pragma once

#include "boyd/core/result.hpp"
#include "boyd/graph/lost_end.hpp"
#include "boyd/graph/segments.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd::graph {

/// What the log of facts lacks, in words for whoever asks it something: segments, `missing_facts`
/// between its lines, and its end, when a line is not there that `expected` names. Empty: nothing.
/// Cheap while the end is whole: it is looked for from there. Blocking.
result<std::string> log_damage(segment_files& files, const std::vector<anchor>& expected,
                               std::uint64_t missing_facts);

} // namespace boyd::graph
