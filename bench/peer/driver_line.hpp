#pragma once

#include <nlohmann/json.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace boyd::bench {

/// The steady clock as the drivers read it (process.hrtime): milliseconds, the same in every
/// process of this machine.
double driver_time();

/// Writes one event: a line "@@{"ev":…}" on the standard output, in one write. Threads: any.
void tell_driver(const std::string& event, nlohmann::json fields = nlohmann::json::object());

/// The driver's commands, read line by line from the standard input by a thread of its own. When
/// the driver is gone, this process ends at once.
class driver_commands {
 public:
  /// Starts the reading thread, which lives as long as the process.
  driver_commands();

  /// The next command; waits for it.
  nlohmann::json next();

 private:
  /// Shared with the thread, which is never joined: it waits for input until the process ends.
  struct inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<nlohmann::json> lines;
  };

  std::shared_ptr<inbox> inbox_;
};

} // namespace boyd::bench
