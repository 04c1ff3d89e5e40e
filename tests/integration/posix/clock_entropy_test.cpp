#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/entropy.hpp"
#include "support/pch.hpp"

#include <mutex>
#include <set>
#include <thread>

namespace boyd::clock_entropy_test {

using namespace boyd;

TEST_CASE("the clocks agree with the machine's and do not run backwards", "[posix][clock]") {
  const auto clock = adapters::make_system_clock();
  const auto before = std::chrono::system_clock::now();
  const auto now = clock->now();
  const auto after = std::chrono::system_clock::now();
  CHECK(now >= std::chrono::floor<milliseconds>(before));
  CHECK(now <= after);
  auto last = clock->steady();
  for (int i = 0; i < 1000; ++i) {
    const auto next = clock->steady();
    REQUIRE(next >= last);
    last = next;
  }
}

TEST_CASE("random numbers differ, also between threads", "[posix][entropy]") {
  const auto random = adapters::make_system_entropy();
  std::mutex mutex;
  std::set<std::uint64_t> seen;
  constexpr int threads = 4;
  constexpr int each = 500;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const auto number = random->next();
        const std::lock_guard lock(mutex);
        seen.insert(number);
      }
    });
  }
  for (auto& thread : running) {
    thread.join();
  }
  CHECK(seen.size() == static_cast<std::size_t>(threads * each));
  for (int i = 0; i < 1000; ++i) {
    const double unit = random->unit();
    REQUIRE((unit >= 0.0 && unit < 1.0));
  }
}

} // namespace boyd::clock_entropy_test
