#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace boyd::test {

/// Where answers wait for the test. Threads: any.
class gate {
 public:
  /// Lets everybody through, now and later.
  void open();
  /// Lets `n` more through.
  void pass(std::size_t n = 1);
  /// How many have come to it so far, those that went through included.
  std::size_t arrived() const;
  /// Waits, bounded, until `n` have come to it.
  bool wait_for_arrivals(std::size_t n) const;

  /// For who waits at it: it has come.
  void arrive();
  /// One passes if it may.
  bool try_pass();
  /// `wake` is called whenever more may pass, and must not block.
  void listen(std::size_t owner, std::function<void()> wake);
  void forget(std::size_t owner);

 private:
  void tell();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool open_ = false;
  std::size_t passes_ = 0;
  std::size_t arrived_ = 0;
  std::vector<std::pair<std::size_t, std::function<void()>>> listeners_;
};

using gate_ptr = std::shared_ptr<gate>;

inline gate_ptr make_gate() {
  return std::make_shared<gate>();
}

} // namespace boyd::test
