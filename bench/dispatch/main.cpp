#include "bench/support/arguments.hpp"
#include "bench/support/place.hpp"
#include "bench/support/queue_node.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/wiring.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <utility>

/// How many no-op dispatches a node takes in, works off and records per second, and how soon one
/// alone is started. See bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_dispatch --store sqlite|postgres://… --n 20000 --runs 3 --json\n"
                       "  --batch 500           rows in one enqueue request\n"
                       "  --in-flight 2         enqueue requests at once\n"
                       "  --agents 4            one row per agent and cycle\n"
                       "  --max-concurrent 64   attempts at once\n"
                       "  --latency 500         dispatches in the latency phase\n"
                       "  --dir /var/tmp        where the homes are made (and removed)\n";

struct plan {
  std::string store;
  std::string directory;
  std::size_t n = 0;
  std::size_t runs = 0;
  std::size_t latency = 0;
  queue_settings queue;
};

struct figures {
  double enqueue = 0; ///< rows per second
  double drain = 0;
  double end_to_end = 0;
  double latency_p50_ms = 0;
  double latency_p99_ms = 0;
  double drain_processor_us = 0; ///< of this process per row, while draining
};

/// Runs `phase(node)` with a node of its own.
template <class Phase>
result<void> with_node(const plan& p, const queue_settings& settings,
                       std::shared_ptr<process_runner> processes, Phase phase) {
  auto where = make_place(p.directory, p.store);
  if (!where)
    return fail(std::move(where.error()));
  auto context = make_context(where->home->path(), where->store, std::move(processes));
  if (!context)
    return fail(std::move(context.error()));
  queue_node node(std::move(*context), settings, where->store);
  if (auto open = node.wait_open(); !open)
    return open;
  return phase(node);
}

/// First everything in, then everything out.
result<void> enqueue_then_drain(const plan& p, figures& f) {
  const auto n = static_cast<double>(p.n);
  return with_node(p, p.queue, nullptr, [&](queue_node& node) -> result<void> {
    auto since = stopwatch_clock::now();
    if (auto in = node.enqueue(p.n); !in)
      return in;
    f.enqueue = n / seconds_since(since);
    const double before = processor_seconds();
    since = stopwatch_clock::now();
    node.start_claiming();
    if (auto out = node.wait_done(p.n); !out)
      return out;
    f.drain = n / seconds_since(since);
    constexpr double micro = 1e6;
    f.drain_processor_us = (processor_seconds() - before) / n * micro;
    return {};
  });
}

/// In and out at the same time.
result<void> end_to_end(const plan& p, figures& f) {
  return with_node(p, p.queue, nullptr, [&](queue_node& node) -> result<void> {
    node.start_claiming();
    const auto since = stopwatch_clock::now();
    if (auto in = node.enqueue(p.n); !in)
      return in;
    if (auto out = node.wait_done(p.n); !out)
      return out;
    f.end_to_end = static_cast<double>(p.n) / seconds_since(since);
    return {};
  });
}

/// One at a time, from the enqueueing call to the start of the attempt.
result<void> latency(const plan& p, figures& f) {
  auto runner = std::make_shared<observing_runner>();
  auto settings = p.queue;
  settings.commands = true;
  settings.agents = 1;
  constexpr std::size_t warm_up = 20;
  std::vector<double> values;
  auto measured = with_node(p, settings, runner, [&](queue_node& node) -> result<void> {
    node.start_claiming();
    for (std::size_t i = 1; i <= p.latency + warm_up; ++i) {
      const auto since = stopwatch_clock::now();
      if (auto in = node.enqueue(1); !in)
        return in;
      auto started = runner->wait_started(i);
      if (!started)
        return fail(std::move(started.error()));
      if (i > warm_up)
        values.push_back(std::chrono::duration<double, std::milli>(*started - since).count());
      if (auto out = node.wait_done(i); !out)
        return out;
    }
    return {};
  });
  f.latency_p50_ms = percentile(values, 50);
  f.latency_p99_ms = percentile(values, 99);
  return measured;
}

nlohmann::json to_json(const figures& f) {
  return {{"enqueue_per_s", f.enqueue},
          {"drain_per_s", f.drain},
          {"end_to_end_per_s", f.end_to_end},
          {"latency_p50_ms", f.latency_p50_ms},
          {"latency_p99_ms", f.latency_p99_ms},
          {"drain_processor_us_per_dispatch", f.drain_processor_us}};
}

figures median_of(const std::vector<figures>& all) {
  const auto of = [&](double figures::*field) {
    std::vector<double> values;
    for (const auto& f : all)
      values.push_back(f.*field);
    return median(std::move(values));
  };
  return {of(&figures::enqueue),        of(&figures::drain),
          of(&figures::end_to_end),     of(&figures::latency_p50_ms),
          of(&figures::latency_p99_ms), of(&figures::drain_processor_us)};
}

void print(const char* name, const figures& f) {
  std::printf("%-8s enqueue %.0f/s, drain %.0f/s (%.0f us of processor each), end to end %.0f/s, "
              "latency p50 %.2f ms, p99 %.2f ms\n",
              name, f.enqueue, f.drain, f.drain_processor_us, f.end_to_end, f.latency_p50_ms,
              f.latency_p99_ms);
  std::fflush(stdout);
}

plan plan_of(const arguments& args) {
  constexpr std::size_t most_rows = 10'000'000;
  constexpr std::size_t most_runs = 100;
  constexpr std::size_t most_at_once = 10'000;
  plan p;
  p.store = args.text("--store", "sqlite");
  p.directory = args.text("--dir", "/var/tmp");
  p.n = args.number("--n", 20'000, most_rows);
  p.runs = args.number("--runs", 3, most_runs);
  p.latency = args.number("--latency", 500, most_rows);
  p.queue.batch = args.number("--batch", p.queue.batch, most_at_once);
  p.queue.in_flight = args.number("--in-flight", p.queue.in_flight, most_at_once);
  p.queue.agents = args.number("--agents", p.queue.agents, most_at_once);
  p.queue.max_concurrent = args.number("--max-concurrent", p.queue.max_concurrent, most_at_once);
  return p;
}

result<void> run(const plan& p, bool json) {
  std::vector<figures> all;
  auto runs = nlohmann::json::array();
  const double load = load_average();
  for (std::size_t i = 0; i < p.runs; ++i) {
    figures f;
    for (auto* phase : {enqueue_then_drain, end_to_end, latency})
      if (auto done = phase(p, f); !done)
        return done;
    all.push_back(f);
    runs.push_back(to_json(f));
    if (!json)
      print(("run " + std::to_string(i + 1)).c_str(), f);
  }
  if (!json) {
    print("median", median_of(all));
    std::printf("peak resident memory %.0f MiB, load average at the start %.2f\n",
                peak_resident_mib(), load);
    return {};
  }
  const nlohmann::json out{{"schema", "boyd.bench.dispatch/1"},
                           {"store", p.store == "sqlite" ? "sqlite" : "postgres"},
                           {"n", p.n},
                           {"batch", p.queue.batch},
                           {"in_flight", p.queue.in_flight},
                           {"agents", p.queue.agents},
                           {"max_concurrent", p.queue.max_concurrent},
                           {"load_average", load},
                           {"peak_resident_mib", peak_resident_mib()},
                           {"median", to_json(median_of(all))},
                           {"runs", runs}};
  std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_dispatch",
                usage,
                {"--store", "--n", "--batch", "--in-flight", "--agents", "--max-concurrent",
                 "--runs", "--latency", "--dir"},
                [](const arguments& args) { return run(plan_of(args), args.has("--json")); }});
}
