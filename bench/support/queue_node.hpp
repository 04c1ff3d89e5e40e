#pragma once

#include "actors/support/node_context.hpp"
#include "bench/support/statistics.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace boyd::bench {

/// Ends every process successfully at its start, and notes when that was: what a dispatcher hands
/// to the outside world is measured, not the outside world.
class observing_runner final : public process_runner {
 public:
  observing_runner();
  ~observing_runner() override;

  result<process_handle> start(process_spec spec, process_events events) override;
  void signal(process_handle handle, int signal) override;
  std::size_t running() const override { return 0; }

  /// Waits until `count` processes were started in all; the time of the last start.
  result<stopwatch_clock::time_point> wait_started(std::uint64_t count);

 private:
  struct shared;
  std::unique_ptr<shared> shared_;
};

inline constexpr auto bench_kernel_id = "bench";

/// What the queue holds and who empties it.
struct queue_settings {
  std::size_t agents = 4;
  std::size_t max_concurrent = 64; ///< of the node; each agent may use all of it
  std::size_t batch = 500;         ///< rows in one request
  std::size_t in_flight = 2;       ///< requests at once
  std::size_t prompt_bytes = 200;
  bool commands = false;      ///< agents run commands (by the process port) instead of scripts
  milliseconds run_time{0};   ///< how long a scripted run waits before it answers
  milliseconds keep_rows{-1}; ///< finished rows older than this are removed; below 0: as configured
  configuration_ptr configuration{}; ///< instead of all that; its kernel is bench_kernel_id
};

/// The longest time a benchmark waits for something that must come.
inline constexpr milliseconds longest_wait = std::chrono::minutes{10};

/// A node's dispatching side: the store's keeper, permits, the workspace's keeper, the pool with
/// its dispatchers, and somebody who listens as a kernel does. Use from one thread.
class queue_node {
 public:
  queue_node(node_context_ptr context, const queue_settings& settings, const std::string& store);
  ~queue_node();
  queue_node(const queue_node&) = delete;
  queue_node& operator=(const queue_node&) = delete;

  /// Adds `count` dispatches; returns when all are durable.
  result<void> enqueue(std::size_t count);

  /// Adds the jobs `first`, `first` + 1, … as dispatches whose prompt is {"i":NUMBER}; returns when
  /// all are durable. A job that was added before stays as it is.
  result<void> enqueue_jobs(std::uint64_t first, std::size_t count);

  /// The dispatchers work from now on.
  void start_claiming();

  /// Waits until `count` dispatches have been settled here; returns when that was.
  result<stopwatch_clock::time_point> wait_settled(std::uint64_t count,
                                                   milliseconds limit = longest_wait);

  /// Waits until `count` dispatches have been settled here, then counts the rows: `count` must be
  /// done in the database.
  result<void> wait_done(std::size_t count);

  /// The rows of this status in the database.
  result<std::uint64_t> count(dispatch_status status);

  /// Waits until the store answers: it is open and migrated.
  result<void> wait_open();

  /// How long the store's keeper takes to answer when nothing is asked of the database: the time
  /// that a message waits in its mailbox; milliseconds.
  result<double> mailbox_wait();

  /// Actors that live.
  std::size_t actors() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The job's number out of a prompt of `enqueue_jobs`; 0 when there is none.
std::uint64_t job_number(const std::string& prompt);

} // namespace boyd::bench
