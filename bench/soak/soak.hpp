#pragma once

#include "bench/support/process_state.hpp"
#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace boyd::bench {

struct soak_settings {
  std::string store;     ///< "sqlite", or a server's postgres:// URI
  std::string directory; ///< where the home is made
  double seconds = 0;
  std::size_t agents = 0;
};

/// One look at the node, taken while nothing is under way (but for `mailbox_ms`).
struct soak_sample {
  double seconds = 0;
  std::uint64_t dispatches = 0; ///< settled so far
  process_state process;
  std::size_t actors = 0;
  std::uint64_t wal_bytes = 0;
  double mailbox_ms =
      0; ///< the longest a question to the busy store's keeper waited since the last
};

using soak_samples = std::vector<soak_sample>;

/// The dispatching side at full speed: rows of scripted agents come in as fast as they are worked
/// off; about one sample a second.
result<soak_samples> soak_queue(const soak_settings& s);

/// A whole node at full speed: cycle after cycle of scripted agents, with records and commits.
result<soak_samples> soak_cycles(const soak_settings& s);

/// A straight line through the second half's samples: bytes per dispatch, and the standard error.
struct slope {
  double value = 0;
  double error = 0;
};
slope slope_per_dispatch(const soak_samples& samples, std::uint64_t process_state::*field);

} // namespace boyd::bench
