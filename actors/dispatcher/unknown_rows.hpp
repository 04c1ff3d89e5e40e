#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/queue/settlement.hpp"

#include <cstddef>
#include <cstdint>

namespace boyd {

/// Whose rows are running here that this dispatcher does not run.
enum class unknown_rows : std::uint8_t {
  of_crashed, ///< its predecessor's
  of_renewed, ///< the same, which somebody told to start anew
  of_claim,   ///< taken by a claim whose commit came to its end although its answer was an error
};

/// Rows of one page of those that run.
inline constexpr std::size_t listed_rows = 200;

/// What an unknown row comes to. A crashed predecessor's attempts count as failed by Boyd's fault,
/// so that a row that ends its dispatcher is not tried for ever; what was never started, or ended
/// by an operator's order, does not count. `unit` is uniform in [0, 1), for the back-off.
settlement settlement_of(dispatch row, unknown_rows which, const queue::retry_limits& limits,
                         double unit);

} // namespace boyd
