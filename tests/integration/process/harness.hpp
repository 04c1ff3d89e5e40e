#pragma once

#include "boyd/core/ids.hpp"
#include "boyd/ports/process_runner.hpp"
#include "src/adapters/posix/proc_fs.hpp"
#include "src/adapters/posix/process_runner.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

namespace boyd::test {

/// Collects what the runner reports about one process.
class recorder {
 public:
  process_events events() {
    return {[this](output_stream s, std::string_view bytes) {
              {
                const std::lock_guard lock(mutex_);
                (s == output_stream::out ? out_ : err_) += bytes;
              }
              output_.signal();
            },
            [this](const process_exit& e) {
              {
                const std::lock_guard lock(mutex_);
                exit_ = e;
              }
              exits_.signal();
            }};
  }

  bool wait() { return exits_.wait(); }
  std::size_t exits() const { return exits_.count(); }
  process_exit exit() const {
    const std::lock_guard lock(mutex_);
    return exit_;
  }
  std::string out() const {
    const std::lock_guard lock(mutex_);
    return out_;
  }
  std::string err() const {
    const std::lock_guard lock(mutex_);
    return err_;
  }
  bool wait_for_output(const std::string& text) {
    std::size_t seen = 0;
    while (out().find(text) == std::string::npos) {
      if (!output_.wait(++seen))
        return false;
    }
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::string out_;
  std::string err_;
  process_exit exit_;
  event_latch exits_;
  event_latch output_;
};

/// Marks processes through their environment, so that a test finds what it left behind.
class process_mark {
 public:
  process_mark() {
    static std::atomic<int> counter{0};
    value_ = std::to_string(::getpid()) + "." + std::to_string(++counter);
  }

  static constexpr const char* name = "BOYD_TEST_MARK";
  const std::string& value() const { return value_; }

  /// Living processes with this mark (a zombie has no environment any more).
  std::size_t living() const {
    const auto pids = adapters::all_processes();
    return static_cast<std::size_t>(std::count_if(pids.begin(), pids.end(), [&](pid_t pid) {
      return adapters::environment_value(pid, name) == value_;
    }));
  }

 private:
  std::string value_;
};

inline process_spec shell(const std::string& script, const process_mark& mark = {}) {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.cwd = "/";
  spec.environment = {{"PATH", "/usr/bin:/bin"}, {process_mark::name, mark.value()}};
  return spec;
}

inline std::shared_ptr<process_runner> make_runner(int lock = -1) {
  auto made = adapters::make_process_runner({.inherit_descriptor = lock});
  if (!made)
    throw std::runtime_error(to_string(made.error()));
  return *made;
}

} // namespace boyd::test
