#include "clock.hpp"

#include <chrono>

namespace boyd::adapters {

namespace {

class system_clock final : public clock_port {
 public:
  utc_time now() const override {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  }

  steady_time steady() const override {
    return std::chrono::floor<milliseconds>(std::chrono::steady_clock::now());
  }
};

} // namespace

std::shared_ptr<clock_port> make_system_clock() {
  return std::make_shared<system_clock>();
}

} // namespace boyd::adapters
