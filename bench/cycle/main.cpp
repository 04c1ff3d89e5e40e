#include "bench/cycle/git_replay.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/place.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/whole_node.hpp"
#include "bench/support/wiring.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

/// What a cycle costs whose agents do nothing, or that has none, with its commits; and what the
/// `git` command needs for the same commits. See bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_cycle --cycles 200 --store sqlite|postgres://… --json\n"
                       "  --agents 1   that do nothing; 0: an empty cycle\n"
                       "  --dir /var/tmp   where the home is made (and removed)\n";
/// Cycles before the measured ones: the home is seeded, files and code are in memory.
constexpr std::size_t warm_up = 5;
constexpr std::size_t commits_per_cycle = 2;

struct plan {
  std::string store;
  std::string directory;
  std::size_t cycles = 0;
  std::size_t agents = 0;
};

struct figures {
  std::vector<double> cycle_ms;
  std::vector<double> git_ms; ///< per cycle: the time of its commits
  std::size_t commits = 0;    ///< made by the measured cycles
  double processor_ms = 0;    ///< of this process, per cycle
};

result<void> run_cycles(const plan& p, const std::string& home, const std::string& store,
                        figures& f) {
  auto context = make_context(home, store, nullptr);
  if (!context)
    return fail(std::move(context.error()));
  const auto repository = (*context)->kernel_home(bench_kernel);
  whole_node node(std::move(*context), p.agents);
  for (std::size_t i = 0; i < warm_up; ++i)
    if (auto done = node.cycle(); !done)
      return done;
  auto before = commits_of(repository);
  if (!before)
    return fail(std::move(before.error()));
  constexpr double milli = 1e3;
  const double processor = processor_seconds();
  for (std::size_t i = 0; i < p.cycles; ++i) {
    const auto since = stopwatch_clock::now();
    if (auto done = node.cycle(); !done)
      return done;
    f.cycle_ms.push_back(seconds_since(since) * milli);
  }
  f.processor_ms = (processor_seconds() - processor) * milli / static_cast<double>(p.cycles);
  auto after = commits_of(repository);
  if (!after)
    return fail(std::move(after.error()));
  f.commits = after->size() - before->size();
  if (f.commits != p.cycles * commits_per_cycle)
    return fail(errc::bug, std::to_string(p.cycles) + " cycles made " + std::to_string(f.commits) +
                               " commits instead of two each");
  return {};
}

result<void> run_git(const plan& p, const std::string& home, figures& f) {
  const auto repository = home + "/kernel/" + bench_kernel;
  auto commits = commits_of(repository);
  if (!commits)
    return fail(std::move(commits.error()));
  const auto measured = std::min(p.cycles * commits_per_cycle, commits->size());
  commits->erase(commits->begin(), commits->end() - static_cast<std::ptrdiff_t>(measured));
  auto times = replay_with_git(repository, home + "/git", *commits);
  if (!times)
    return fail(std::move(times.error()));
  for (std::size_t i = 0; i + 1 < times->size(); i += commits_per_cycle)
    f.git_ms.push_back((*times)[i] + (*times)[i + 1]);
  return {};
}

void print(const plan& p, const figures& f, double load) {
  const double cycle = percentile(f.cycle_ms, 50);
  const double git = percentile(f.git_ms, 50);
  std::printf("%zu cycles of %zu agents made %zu commits\n", p.cycles, p.agents, f.commits);
  std::printf("cycle        p50 %.2f ms, p99 %.2f ms, processor %.2f ms\n", cycle,
              percentile(f.cycle_ms, 99), f.processor_ms);
  std::printf("git command  p50 %.2f ms, p99 %.2f ms for the same two commits\n", git,
              percentile(f.git_ms, 99));
  std::printf("ratio        %.2f (a whole cycle over git's two commits)\n", cycle / git);
  std::printf("peak resident memory %.0f MiB, load average at the start %.2f\n",
              peak_resident_mib(), load);
}

void print_json(const plan& p, const figures& f, double load) {
  const nlohmann::json out{{"schema", "boyd.bench.cycle/1"},
                           {"store", p.store == "sqlite" ? "sqlite" : "postgres"},
                           {"cycles", p.cycles},
                           {"agents", p.agents},
                           {"commits", f.commits},
                           {"cycle_p50_ms", percentile(f.cycle_ms, 50)},
                           {"cycle_p99_ms", percentile(f.cycle_ms, 99)},
                           {"cycle_processor_ms", f.processor_ms},
                           {"git_p50_ms", percentile(f.git_ms, 50)},
                           {"git_p99_ms", percentile(f.git_ms, 99)},
                           {"ratio", percentile(f.cycle_ms, 50) / percentile(f.git_ms, 50)},
                           {"load_average", load},
                           {"peak_resident_mib", peak_resident_mib()}};
  std::printf("%s\n", out.dump(2).c_str());
}

result<void> run(const plan& p, bool json) {
  const double load = load_average();
  auto where = make_place(p.directory, p.store);
  if (!where)
    return fail(std::move(where.error()));
  figures f;
  const auto& home = where->home->path();
  if (auto done = run_cycles(p, home, where->store, f); !done)
    return done;
  if (auto done = run_git(p, home, f); !done)
    return done;
  if (json)
    print_json(p, f, load);
  else
    print(p, f, load);
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_cycle",
                usage,
                {"--cycles", "--agents", "--store", "--dir"},
                [](const arguments& args) {
                  constexpr std::size_t most_cycles = 100'000;
                  constexpr std::size_t most_agents = 64;
                  const plan p{args.text("--store", "sqlite"), args.text("--dir", "/var/tmp"),
                               args.number("--cycles", 200, most_cycles),
                               args.number("--agents", 1, most_agents, 0)};
                  return run(p, args.has("--json"));
                }});
}
