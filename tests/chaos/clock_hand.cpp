#include "clock_hand.hpp"

#include "support/sanitized.hpp"

namespace boyd::test {

std::map<std::string, std::string> clock_hand::environment() const {
  std::map<std::string, std::string> all{{"LD_PRELOAD", BOYD_SHIFTED_CLOCK},
                                         {wall_clock_variable, clock_.path()}};
  // Preloaded, it stands before the sanitizer's library, which would refuse to start.
  if (sanitized())
    all["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  return all;
}

void clock_hand::set(std::chrono::seconds ahead) {
  clock_->ahead_s = ahead.count();
}

} // namespace boyd::test
