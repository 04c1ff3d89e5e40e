#include "bench/curves/curves.hpp"

#include "bench/support/place.hpp"
#include "bench/support/process_state.hpp"
#include "bench/support/queue_node.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/whole_node.hpp"
#include "bench/support/wiring.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

namespace boyd::bench {

namespace {

constexpr double milli = 1e3;
constexpr double micro = 1e6;
constexpr double mebibyte = 1024.0 * 1024.0;
constexpr std::size_t first_rows = 1000;
constexpr std::size_t decade = 10;

/// A node with a place of its own.
struct node_in_place {
  place where;
  std::unique_ptr<queue_node> node;

  static result<node_in_place> make(const curve_settings& s, const queue_settings& queue) {
    auto where = make_place(s.directory, s.store);
    if (!where)
      return fail(std::move(where.error()));
    auto context = make_context(where->home->path(), where->store, nullptr);
    if (!context)
      return fail(std::move(context.error()));
    node_in_place made;
    made.node = std::make_unique<queue_node>(std::move(*context), queue, where->store);
    made.where = std::move(*where);
    if (auto open = made.node->wait_open(); !open)
      return fail(std::move(open.error()));
    return made;
  }
};

queue_settings settings_of(const curve_settings& s) {
  queue_settings queue;
  queue.max_concurrent = s.max_concurrent;
  return queue;
}

/// Dispatches of one node, counted from its start.
class dispatching {
 public:
  explicit dispatching(queue_node& node) : node_(node) {}

  /// In and out at once.
  result<void> through(std::size_t rows) {
    if (auto in = node_.enqueue(rows); !in)
      return in;
    total_ += rows;
    if (auto out = node_.wait_settled(total_); !out)
      return fail(std::move(out.error()));
    return {};
  }

  result<void> up_to(std::size_t rows) {
    // So that a backlog's own cost stays out of this.
    constexpr std::size_t at_once = 20'000;
    while (total_ < rows)
      if (auto done = through(std::min(at_once, rows - total_)); !done)
        return done;
    return {};
  }

 private:
  queue_node& node_;
  std::size_t total_ = 0;
};

result<curve_point> point_of_finished_rows(dispatching& work, std::size_t rows,
                                           std::size_t window) {
  constexpr std::size_t singles = 200;
  const double processor = processor_seconds();
  const auto since = stopwatch_clock::now();
  if (auto done = work.through(window); !done)
    return fail(std::move(done.error()));
  const auto n = static_cast<double>(window);
  const double rate = n / seconds_since(since);
  const double cost = (processor_seconds() - processor) / n * micro;
  std::vector<double> single_ms;
  for (std::size_t i = 0; i < singles; ++i) {
    const auto alone = stopwatch_clock::now();
    if (auto done = work.through(1); !done)
      return fail(std::move(done.error()));
    single_ms.push_back(seconds_since(alone) * milli);
  }
  return curve_point{
      {{"finished_rows", static_cast<double>(rows)},
       {"dispatches_per_s", rate},
       {"processor_us_each", cost},
       {"single_p50_ms", percentile(single_ms, 50)},
       {"single_p99_ms", percentile(single_ms, 99)},
       {"resident_mib", static_cast<double>(observe_process().resident_bytes) / mebibyte}}};
}

} // namespace

result<curve_points> cost_by_finished_rows(const curve_settings& s) {
  curve_points points;
  for (std::size_t rows = first_rows; rows <= s.most; rows *= decade) {
    auto made = node_in_place::make(s, settings_of(s));
    if (!made)
      return fail(std::move(made.error()));
    made->node->start_claiming();
    dispatching work(*made->node);
    if (auto done = work.up_to(rows); !done)
      return fail(std::move(done.error()));
    auto point = point_of_finished_rows(work, rows, s.window);
    if (!point)
      return fail(std::move(point.error()));
    points.push_back(std::move(*point));
  }
  return points;
}

result<curve_points> cost_by_backlog(const curve_settings& s) {
  curve_points points;
  for (std::size_t rows = first_rows; rows <= s.most; rows *= decade) {
    auto made = node_in_place::make(s, settings_of(s));
    if (!made)
      return fail(std::move(made.error()));
    auto& node = *made->node;
    const auto n = static_cast<double>(rows);
    auto since = stopwatch_clock::now();
    if (auto in = node.enqueue(rows); !in)
      return fail(std::move(in.error()));
    const double in = n / seconds_since(since);
    const double processor = processor_seconds();
    since = stopwatch_clock::now();
    node.start_claiming();
    if (auto out = node.wait_done(rows); !out)
      return fail(std::move(out.error()));
    points.push_back({{{"backlog_rows", n},
                       {"enqueue_per_s", in},
                       {"drain_per_s", n / seconds_since(since)},
                       {"processor_us_each", (processor_seconds() - processor) / n * micro}}});
  }
  return points;
}

result<curve_points> cost_by_commits(const curve_settings& s) {
  constexpr std::size_t commits_per_cycle = 2;
  constexpr std::size_t first_commits = 10;
  auto where = make_place(s.directory, s.store);
  if (!where)
    return fail(std::move(where.error()));
  auto context = make_context(where->home->path(), where->store, nullptr);
  if (!context)
    return fail(std::move(context.error()));
  whole_node node(std::move(*context));
  curve_points points;
  std::size_t cycles = 0;
  for (std::size_t commits = first_commits; commits <= s.most; commits *= decade) {
    for (; cycles < commits / commits_per_cycle; ++cycles)
      if (auto done = node.cycle(); !done)
        return fail(std::move(done.error()));
    std::vector<double> cycle_ms;
    const double processor = processor_seconds();
    for (std::size_t i = 0; i < s.window; ++i, ++cycles) {
      const auto since = stopwatch_clock::now();
      if (auto done = node.cycle(); !done)
        return fail(std::move(done.error()));
      cycle_ms.push_back(seconds_since(since) * milli);
    }
    const double cost = (processor_seconds() - processor) / static_cast<double>(s.window) * milli;
    points.push_back({{{"commits", static_cast<double>(commits)},
                       {"cycle_p50_ms", percentile(cycle_ms, 50)},
                       {"cycle_p99_ms", percentile(cycle_ms, 99)},
                       {"processor_ms_each", cost}}});
  }
  return points;
}

result<curve_points> memory_of_waiting_runs(const curve_settings& s) {
  auto queue = settings_of(s);
  queue.max_concurrent = s.most;
  queue.run_time = std::chrono::hours{1};
  auto made = node_in_place::make(s, queue);
  if (!made)
    return fail(std::move(made.error()));
  auto& node = *made->node;
  const auto before = observe_process();
  if (auto in = node.enqueue(s.most); !in)
    return fail(std::move(in.error()));
  node.start_claiming();
  constexpr std::chrono::milliseconds between{50};
  const auto since = stopwatch_clock::now();
  const double most_seconds = std::chrono::duration<double>(longest_wait).count();
  for (std::uint64_t running = 0; running < s.most;) {
    auto counted = node.count(dispatch_status::running);
    if (!counted)
      return fail(std::move(counted.error()));
    running = *counted;
    if (running < s.most && seconds_since(since) > most_seconds)
      return fail(errc::timed_out, "only " + std::to_string(running) + " runs wait");
    std::this_thread::sleep_for(between);
  }
  const auto after = observe_process();
  const auto grown = static_cast<double>(after.resident_bytes - before.resident_bytes);
  return curve_points{
      {{{"waiting_runs", static_cast<double>(s.most)},
        {"resident_before_mib", static_cast<double>(before.resident_bytes) / mebibyte},
        {"resident_mib", static_cast<double>(after.resident_bytes) / mebibyte},
        {"bytes_each", grown / static_cast<double>(s.most)},
        {"threads", static_cast<double>(after.threads)},
        {"actors", static_cast<double>(node.actors())}}}};
}

} // namespace boyd::bench
