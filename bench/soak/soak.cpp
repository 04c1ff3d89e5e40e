#include "bench/soak/soak.hpp"

#include "bench/support/place.hpp"
#include "bench/support/queue_node.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/whole_node.hpp"
#include "bench/support/wiring.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::bench {

namespace {

constexpr double between_samples = 1;

/// Rows are removed a second after they are finished, in steps of a second: a soak must not fill
/// the disk, and removal is part of what may leak.
constexpr milliseconds keep_rows = std::chrono::seconds{1};

housekeeping_intervals housekeeping() {
  housekeeping_intervals h;
  h.retention = keep_rows;
  return h;
}

class sampler {
 public:
  explicit sampler(std::string wal) : wal_(std::move(wal)) {}

  double seconds() const { return seconds_since(began_); }
  void note_mailbox(double ms) { mailbox_ms_ = std::max(mailbox_ms_, ms); }
  bool is_due() const {
    return samples_.empty() || seconds() - samples_.back().seconds >= between_samples;
  }

  void take(std::uint64_t dispatches, std::size_t actors) {
    soak_sample s;
    s.seconds = seconds();
    s.dispatches = dispatches;
    s.process = observe_process();
    s.actors = actors;
    s.wal_bytes = size_of_file(wal_);
    s.mailbox_ms = std::exchange(mailbox_ms_, 0);
    samples_.push_back(s);
  }

  soak_samples samples() && { return std::move(samples_); }

 private:
  stopwatch_clock::time_point began_ = stopwatch_clock::now();
  std::string wal_;
  double mailbox_ms_ = 0;
  soak_samples samples_;
};

result<node_context_ptr> context_in(const place& where) {
  return make_context(where.home->path(), where.store, nullptr, housekeeping());
}

} // namespace

result<soak_samples> soak_queue(const soak_settings& s) {
  auto where = make_place(s.directory, s.store);
  if (!where)
    return fail(std::move(where.error()));
  auto context = context_in(*where);
  if (!context)
    return fail(std::move(context.error()));
  queue_settings queue;
  queue.agents = s.agents;
  queue.max_concurrent = 1024;
  queue.keep_rows = keep_rows;
  queue_node node(std::move(*context), queue, where->store);
  if (auto open = node.wait_open(); !open)
    return fail(std::move(open.error()));
  node.start_claiming();
  constexpr std::size_t rows_at_once = 5000;
  sampler samples(where->home->path() + "/boyd.db-wal");
  for (std::uint64_t total = 0; samples.seconds() < s.seconds;) {
    if (auto in = node.enqueue(rows_at_once); !in)
      return fail(std::move(in.error()));
    auto waited = node.mailbox_wait();
    if (!waited)
      return fail(std::move(waited.error()));
    samples.note_mailbox(*waited);
    total += rows_at_once;
    if (auto out = node.wait_settled(total); !out)
      return fail(std::move(out.error()));
    if (samples.is_due())
      samples.take(total, node.actors());
  }
  return std::move(samples).samples();
}

result<soak_samples> soak_cycles(const soak_settings& s) {
  auto where = make_place(s.directory, s.store);
  if (!where)
    return fail(std::move(where.error()));
  auto context = context_in(*where);
  if (!context)
    return fail(std::move(context.error()));
  whole_node node(std::move(*context), s.agents, keep_rows);
  sampler samples(where->home->path() + "/boyd.db-wal");
  for (std::uint64_t total = 0; samples.seconds() < s.seconds;) {
    if (auto done = node.cycle(); !done)
      return fail(std::move(done.error()));
    total += s.agents;
    if (samples.is_due())
      samples.take(total, node.actors());
  }
  return std::move(samples).samples();
}

slope slope_per_dispatch(const soak_samples& samples, std::uint64_t process_state::*field) {
  const auto first = samples.size() / 2;
  const auto n = static_cast<double>(samples.size() - first);
  double mean_x = 0;
  double mean_y = 0;
  for (auto i = first; i < samples.size(); ++i) {
    mean_x += static_cast<double>(samples[i].dispatches) / n;
    mean_y += static_cast<double>(samples[i].process.*field) / n;
  }
  double covariance = 0;
  double variance = 0;
  for (auto i = first; i < samples.size(); ++i) {
    const double dx = static_cast<double>(samples[i].dispatches) - mean_x;
    covariance += dx * (static_cast<double>(samples[i].process.*field) - mean_y);
    variance += dx * dx;
  }
  if (variance <= 0)
    return {};
  slope line{covariance / variance, 0};
  double residual = 0;
  for (auto i = first; i < samples.size(); ++i) {
    const double dx = static_cast<double>(samples[i].dispatches) - mean_x;
    const double off = static_cast<double>(samples[i].process.*field) - mean_y - line.value * dx;
    residual += off * off;
  }
  constexpr double fitted = 2; // a line has two parameters
  if (n > fitted)
    line.error = std::sqrt(residual / (n - fitted) / variance);
  return line;
}

} // namespace boyd::bench
