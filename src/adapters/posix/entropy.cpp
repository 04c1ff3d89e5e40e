#include "entropy.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <sys/random.h>

namespace boyd::adapters {

namespace {

class system_entropy final : public entropy {
 public:
  std::uint64_t next() override {
    const std::lock_guard lock(mutex_);
    if (used_ == block_.size()) {
      refill();
    }
    return block_[used_++];
  }

 private:
  /// getrandom gives up to 256 bytes at once without interruption (getrandom(2)).
  static constexpr std::size_t block_bytes = 256;

  void refill() {
    ssize_t got = 0;
    do {
      got = ::getrandom(block_.data(), block_bytes, 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(block_bytes)) {
      std::abort(); // no randomness: going on would make ids that collide
    }
    used_ = 0;
  }

  std::mutex mutex_;
  std::array<std::uint64_t, block_bytes / sizeof(std::uint64_t)> block_{};
  std::size_t used_ = block_bytes / sizeof(std::uint64_t);
};

} // namespace

std::shared_ptr<entropy> make_system_entropy() {
  return std::make_shared<system_entropy>();
}

} // namespace boyd::adapters
