#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <vector>

namespace boyd::bench {

/// How one actor's crashes are made.
struct trial_settings {
  std::size_t crashes = 2000;
  std::size_t threads = 2; ///< of the scheduler
  bool kill = false;       ///< by an exit message; otherwise the child throws
  milliseconds pause{0};   ///< between two crashes
};

/// A supervisor as every supervisor of a node is (`supervisor_shell`) with one child. Each time:
/// the child answers a question, then it is made to end, then the supervisor is asked again and
/// again for its child until it is another one and answers. Microseconds from the order to end
/// until that answer, one value for each crash. Every crash counts as a first one for the
/// supervisor's back-off, whose waiting is on purpose. Error `timed_out` when the supervisor gives
/// up.
result<std::vector<double>> crash_and_answer_us(const trial_settings& s);

} // namespace boyd::bench
