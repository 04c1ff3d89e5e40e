#include "bench/restart/trial.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

/// From the crash of a supervised actor until the one in its place answers: the product's
/// supervisor, measured as bench/README.md tells, for comparison with Erlang/OTP's.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_restart --n 2000 --runs 3 --json\n"
                       "  --threads 2   of the scheduler\n"
                       "  --pause 5     milliseconds between two paced crashes\n";

struct figure {
  std::string name;
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> most;
};

result<void> run(const arguments& args) {
  constexpr std::size_t most_trials = 1'000'000;
  constexpr std::size_t most_runs = 100;
  constexpr std::size_t most_threads = 64;
  constexpr std::size_t most_pause = 1000;
  trial_settings s;
  s.crashes = args.number("--n", s.crashes, most_trials);
  s.threads = args.number("--threads", s.threads, most_threads);
  const milliseconds pause{static_cast<milliseconds::rep>(args.number("--pause", 5, most_pause))};
  const auto runs = args.number("--runs", 3, most_runs);
  std::vector<figure> all{{"kill_burst", {}, {}, {}},
                          {"kill_paced", {}, {}, {}},
                          {"crash_burst", {}, {}, {}},
                          {"crash_paced", {}, {}, {}}};
  for (std::size_t i = 0; i < runs; ++i)
    for (auto& f : all) {
      s.kill = f.name.starts_with("kill");
      s.pause = f.name.ends_with("paced") ? pause : milliseconds{0};
      auto times = crash_and_answer_us(s);
      if (!times)
        return fail(std::move(times.error()));
      f.p50.push_back(percentile(*times, 50));
      f.p99.push_back(percentile(*times, 99));
      f.most.push_back(*std::ranges::max_element(*times));
    }
  auto out = nlohmann::json{{"schema", "boyd.bench.restart/1"},
                            {"n", s.crashes},
                            {"runs", runs},
                            {"threads", s.threads},
                            {"load_average", load_average()}};
  for (const auto& f : all) {
    out[f.name] = {
        {"p50_us", median(f.p50)}, {"p99_us", median(f.p99)}, {"max_us", median(f.most)}};
    if (!args.has("--json"))
      std::printf("%-12s p50 %.1f us, p99 %.1f us, max %.1f us\n", f.name.c_str(), median(f.p50),
                  median(f.p99), median(f.most));
  }
  if (args.has("--json"))
    std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_restart", usage, {"--n", "--runs", "--threads", "--pause"}, run});
}
