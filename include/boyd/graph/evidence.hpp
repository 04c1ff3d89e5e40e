#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/record/execution.hpp"

#include <string>
#include <vector>

namespace boyd::graph {

class fact_source;

/// Executions of one cycle, whose facts and lessons are in the log.
struct evidence_question {
  std::string kernel_id;
  std::string cycle_id;
  utc_time at{};                       ///< the cycle's end: its lessons have this time
  std::vector<std::string> executions; ///< ids of dispatches
};

/// What the log says of each execution, in their order: its own facts, and changes of stage and
/// promotions of the items that it was given, as far as they belong to its cycle. The same whenever
/// it is asked: what came later is not among it.
result<std::vector<record::execution_facts>> evidence_of(fact_source& source,
                                                         const evidence_question& question);

} // namespace boyd::graph
