#pragma once

#include "boyd/core/time.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace boyd::adapters::postgres {

/// Ends the wait for an answer that does not come. libpq waits for the server without any limit,
/// and neither the server's own timeouts nor TCP's help when a proxy or a switch between them keeps
/// the connection and loses what goes through it. One thread, which sleeps while no call is long.
class call_limit {
 public:
  /// `socket` stays its owner's; it is shut down, both ways, when a call is over its limit.
  explicit call_limit(int socket);
  ~call_limit();
  call_limit(const call_limit&) = delete;
  call_limit& operator=(const call_limit&) = delete;

  /// A call begins that may last so long.
  void begin(milliseconds limit);
  /// It is over.
  void end() noexcept;
  /// Whether a call was ended by its limit; the connection is of no more use then.
  bool struck() const;

 private:
  using clock = std::chrono::steady_clock;

  void watch();

  // A descriptor of our own: libpq may close its socket while a call fails, and the number may lead
  // to something else a moment later.
  int socket_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool calling_ = false;
  bool idle_ = true; ///< the thread waits for the next call, whenever it comes
  bool stop_ = false;
  bool struck_ = false;
  clock::time_point until_{};
  clock::time_point looks_at_{}; ///< when the thread looks again, unless it is idle
  std::thread thread_;
};

} // namespace boyd::adapters::postgres
