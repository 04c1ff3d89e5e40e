#include "bench/support/arguments.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "boyd/faults/points.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

/// What a fault point costs while no fault is armed: a loop with one in each turn against the same
/// loop without, in turns.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_faults --n 100000000 --runs 5 --json\n";

/// Keeps the compiler from dropping or joining turns.
inline void turn_ends(std::uint64_t& seen) {
  asm volatile("" : "+r"(seen) : : "memory");
}

template <class Turn>
double ns_each(std::size_t n, Turn turn) {
  std::uint64_t seen = 0;
  const auto since = stopwatch_clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    seen += turn() ? 1 : 0;
    turn_ends(seen);
  }
  constexpr double nano = 1e9;
  return seconds_since(since) * nano / static_cast<double>(n);
}

result<void> run(const arguments& args) {
  constexpr std::size_t most = 10'000'000'000;
  constexpr std::size_t most_runs = 100;
  const auto n = args.number("--n", 100'000'000, most);
  const auto runs = args.number("--runs", 5, most_runs);
  std::vector<double> without;
  std::vector<double> pass;
  std::vector<double> lost;
  for (std::size_t i = 0; i < runs; ++i) {
    without.push_back(ns_each(n, [] { return true; }));
    pass.push_back(ns_each(n, [] { return faults::pass("store.apply").has_value(); }));
    lost.push_back(ns_each(n, [] { return !faults::lost("queue.changed"); }));
  }
  const nlohmann::json out{{"schema", "boyd.bench.faults/1"},
                           {"n", n},
                           {"runs", runs},
                           {"loop_ns", median(without)},
                           {"pass_ns", median(pass)},
                           {"lost_ns", median(lost)},
                           {"load_average", load_average()}};
  if (args.has("--json"))
    std::printf("%s\n", out.dump(2).c_str());
  else
    std::printf("a turn %.2f ns; with a point that may fail %.2f ns, with a message that may be "
                "lost %.2f ns\n",
                median(without), median(pass), median(lost));
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv, {"bench_faults", usage, {"--n", "--runs"}, run});
}
