#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Named places where a person or a test may let something go wrong (SPEC §23). Off unless armed:
/// then one relaxed load each.
namespace boyd::faults {

enum class action : std::uint8_t {
  crash, ///< an exception leaves the part: its actor dies and is restarted
  error, ///< the operation fails with errc::injected
  delay, ///< the operation takes longer; only at points that workers pass
};

/// One armed fault.
struct arming {
  std::string point;
  action what = action::error;
  int count = 1;            ///< how often at most; negative: without end
  double probability = 1.0; ///< of each pass
  milliseconds delay{0};
};

/// Every point there is, sorted.
const std::vector<std::string_view>& points();

/// Arms faults, on top of earlier ones; `not_found` names the nearest point. `seed` decides
/// probabilities. Threads: any.
result<void> arm(const std::vector<arming>& faults, std::uint64_t seed);

/// Ends all faults.
void disarm();

/// How often a fault was let loose at `point` since the process started.
std::uint64_t triggered(std::string_view point);

namespace detail {
extern std::atomic<bool> armed;
result<void> pass(std::string_view point);
} // namespace detail

/// Passes the point: nothing, an error, a delay, or an exception (std::runtime_error naming it).
inline result<void> pass(std::string_view point) {
  if (!detail::armed.load(std::memory_order_relaxed))
    return {};
  return detail::pass(point);
}

} // namespace boyd::faults
