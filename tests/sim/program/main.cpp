// boyd-sim: virtual days of whole nodes, one for each seed, with faults; see docs/reliability.md.

#include "tests/sim/lab/scenario.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace boyd;
using namespace boyd::sim;

namespace {

struct options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 100;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  int days = 1;
  bool verbose = false;
  std::string program; ///< as it was called
};

constexpr const char* usage =
    "usage: boyd-sim [--seeds N=100] [--first S=1] [--jobs J=cores] [--days D=1] [--verbose]\n"
    "Runs whole nodes through virtual days with faults, one seed each, and checks the invariants\n"
    "of docs/reliability.md. Exit code 1: one was broken; the line that begins with `replay:` "
    "repeats it.\n";

std::optional<options> parse(int argc, char** argv) {
  options o;
  o.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--verbose") {
      o.verbose = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "boyd-sim: %s: unknown, or its number is missing\n", argv[i]);
      return std::nullopt;
    }
    char* end = nullptr;
    const auto value = std::strtoull(argv[++i], &end, 10);
    if (*end != '\0' || value == 0) {
      std::fprintf(stderr, "boyd-sim: %s %s: give a whole number above 0\n", argv[i - 1], argv[i]);
      return std::nullopt;
    }
    if (name == "--seeds")
      o.seeds = value;
    else if (name == "--first")
      o.first = value;
    else if (name == "--jobs" && value > 0 && value <= 1024)
      o.jobs = static_cast<unsigned>(value);
    else if (name == "--days" && value > 0 && value <= 365)
      o.days = static_cast<int>(value);
    else {
      std::fprintf(
          stderr,
          "boyd-sim: %s %s: no such option, or out of range (at most 1,024 jobs, 365 days)\n",
          argv[i - 1], argv[i]);
      return std::nullopt;
    }
  }
  return o;
}

/// The sums over all seeds.
struct totals {
  seed_report sum;
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t fewest_kinds = fault_kinds;
};

std::uint64_t kinds_of(const seed_report& r) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(r.faults, [](std::uint64_t n) { return n > 0; }));
}

void show(const seed_report& r, const options& o) {
  std::printf("seed %llu: trace %016llx, %llu cycles, %llu messages, %llu crashes, %llu kinds of "
              "faults%s\n",
              static_cast<unsigned long long>(r.seed), static_cast<unsigned long long>(r.trace),
              static_cast<unsigned long long>(r.cycles),
              static_cast<unsigned long long>(r.messages),
              static_cast<unsigned long long>(r.crashes),
              static_cast<unsigned long long>(kinds_of(r)), r.violations.empty() ? "" : ": BROKEN");
  for (const auto& v : r.violations)
    std::printf("  broken: %s\n", v.c_str());
  for (const auto& e : r.events)
    std::printf("  %s\n", e.c_str());
  if (!r.violations.empty())
    std::printf("replay: %s --first %llu --seeds 1 --days %d --verbose\n", o.program.c_str(),
                static_cast<unsigned long long>(r.seed), o.days);
  std::fflush(stdout);
}

void add(totals& t, const seed_report& r) {
  ++t.seeds;
  t.failed += r.violations.empty() ? 0 : 1;
  t.sum.virtual_time += r.virtual_time;
  t.sum.messages += r.messages;
  t.sum.cycles += r.cycles;
  t.sum.dispatches += r.dispatches;
  t.sum.chat_calls += r.chat_calls;
  t.sum.crashes += r.crashes;
  for (std::size_t i = 0; i < fault_kinds; ++i)
    t.sum.faults[i] += r.faults[i];
  t.fewest_kinds = std::min(t.fewest_kinds, kinds_of(r));
}

totals run_all(const options& o) {
  totals t;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (auto i = next++; i < o.seeds; i = next++) {
      const auto r = run_seed(o.first + i, o.days);
      const std::lock_guard lock(mutex);
      add(t, r);
      if (o.verbose || !r.violations.empty() || kinds_of(r) < fewest_kinds)
        show(r, o);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned j = 1; j < o.jobs; ++j)
    threads.emplace_back(work);
  work();
  for (auto& thread : threads)
    thread.join();
  return t;
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(usage, stdout);
    return 0;
  }
  const auto o = parse(argc, argv);
  if (!o) {
    std::fputs(usage, stderr);
    return 2;
  }
  // The log is for one seed; of many it is noise that costs half of the time.
  spdlog::set_level(o->verbose && o->seeds == 1 ? spdlog::level::info : spdlog::level::off);
  const auto started = std::chrono::steady_clock::now();
  const auto t = run_all(*o);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  std::string faults;
  for (std::size_t i = 0; i < fault_kinds; ++i)
    faults +=
        " " + std::string(name_of(static_cast<fault>(i))) + "=" + std::to_string(t.sum.faults[i]);
  std::printf("%llu seeds (%llu broken), %.1f virtual days, %llu messages, %llu cycles, "
              "%llu dispatches, %llu calls of chats, %llu crashes, at least %llu kinds of faults a "
              "seed:%s; "
              "%.1f s, %.1f seeds/s\n",
              static_cast<unsigned long long>(t.seeds), static_cast<unsigned long long>(t.failed),
              std::chrono::duration<double>(t.sum.virtual_time).count() / 86'400,
              static_cast<unsigned long long>(t.sum.messages),
              static_cast<unsigned long long>(t.sum.cycles),
              static_cast<unsigned long long>(t.sum.dispatches),
              static_cast<unsigned long long>(t.sum.chat_calls),
              static_cast<unsigned long long>(t.sum.crashes),
              static_cast<unsigned long long>(t.fewest_kinds), faults.c_str(), took.count(),
              static_cast<double>(t.seeds) / took.count());
  if (t.fewest_kinds < fewest_kinds)
    std::printf("broken: a seed met fewer than %llu kinds of faults\n",
                static_cast<unsigned long long>(fewest_kinds));
  return t.failed == 0 && t.fewest_kinds >= fewest_kinds ? 0 : 1;
}
