#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

namespace boyd::faults {

/// What comes from one source, in its order, some of it late: that comes on a thread of its own,
/// for nobody may block the source's, and nothing overtakes it. It is late no longer than until the
/// faults are disarmed. Threads: any.
class late_line : public std::enable_shared_from_this<late_line> {
 public:
  bool is_behind();
  /// Now, or after `delay` and all that is behind already.
  void pass(milliseconds delay, std::function<void()> what);

 private:
  std::mutex mutex_;
  std::size_t late_ = 0;
};

} // namespace boyd::faults
