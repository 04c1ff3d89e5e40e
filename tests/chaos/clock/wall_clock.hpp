#pragma once

#include <atomic>
#include <cstdint>

/// What the preloaded library that shifts a process's wall clock and the test that sets it share: a
/// small file that both map.
namespace boyd::test {

/// The environment variable that names the file.
inline constexpr const char* wall_clock_variable = "BOYD_TEST_WALL_CLOCK";

struct wall_clock {
  std::atomic<std::int64_t>
      ahead_s; ///< seconds that the process's wall clock is ahead of the true one
  std::atomic<std::uint64_t> asked; ///< how often a clock that was not true has been read
};

} // namespace boyd::test
