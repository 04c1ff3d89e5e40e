#pragma once

#include "bench/support/statistics.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/process_runner.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace boyd::bench {

/// What the peers' handlers do, in the place of child processes (the peers fork none either): a job
/// is announced or logged when it starts ("s NUMBER TIME"), lasts a while, and ends well. Its
/// effect is a line of the log ("e NUMBER TIME"), under the job's number as its key: a job that is
/// run again after its effect was made, as when its result was not recorded before a crash, leaves
/// it alone and says so ("r NUMBER"). Takes the number from the prompt at its standard input.
class job_runner final : public process_runner {
 public:
  struct settings {
    bool announce = false; ///< each start is told to the driver
    std::string log;       ///< what jobs do is appended to it, see below; empty: not
    milliseconds lasts{0};
  };

  /// Opens the log; `io_error` when it cannot be.
  static result<std::shared_ptr<job_runner>> make(const settings& s);

  ~job_runner() override;
  job_runner(const job_runner&) = delete;
  job_runner& operator=(const job_runner&) = delete;

  result<process_handle> start(process_spec spec, process_events events) override;
  /// Ignored: jobs last milliseconds.
  void signal(process_handle handle, int signal) override;
  std::size_t running() const override;

 private:
  struct job {
    stopwatch_clock::time_point ends;
    std::uint64_t number = 0;
    process_events events;
    bool operator<(const job& other) const { return ends > other.ends; }
  };

  explicit job_runner(settings s) : settings_(std::move(s)) {}
  void write(const std::string& line) const;
  /// False: the log has it already.
  bool make_effect(std::uint64_t number);
  void end(const job& j);
  void work();

  settings settings_;
  int log_ = -1;
  std::mutex effects_mutex_;
  std::unordered_set<std::uint64_t> effects_; ///< the jobs whose effect is in the log
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<job> jobs_; ///< the next to end first
  process_handle last_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace boyd::bench
