// boyd-sim: virtual days of whole nodes, one for each seed, with faults; see docs/reliability.md.

#include "boyd/core/signal_stack.hpp"
#include "tests/sim/lab/scenario.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace boyd;
using namespace boyd::sim;

namespace {

constexpr unsigned most_jobs = 1024;

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
    else if (name == "--jobs" && value > 0 && value <= most_jobs)
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
  if (!r.violations.empty() || kinds_of(r) < fewest_kinds)
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

/// The seeds that run at this moment, for the word of a process that is about to end; 0: none.
std::array<std::atomic<std::uint64_t>, most_jobs> under_way{};
std::atomic<int> days_of_each{1};

/// In a handler of a signal: only what POSIX allows there.
void write_number(std::uint64_t n) {
  std::array<char, 24> text{};
  std::size_t at = text.size();
  do
    text[--at] = static_cast<char>('0' + n % 10);
  while ((n /= 10) > 0);
  (void)!::write(STDERR_FILENO, text.data() + at, text.size() - at);
}

/// A run that ends its process, or that somebody ends for it hangs, is repeated from its number,
/// too.
void tell_under_way(int signal) {
  constexpr std::string_view head =
      "boyd-sim ends; replay each: boyd-sim --verbose --seeds 1 --days ";
  constexpr std::string_view first = " --first";
  (void)!::write(STDERR_FILENO, head.data(), head.size());
  write_number(static_cast<std::uint64_t>(days_of_each.load()));
  (void)!::write(STDERR_FILENO, first.data(), first.size());
  for (const auto& seed : under_way)
    if (const auto n = seed.load(); n > 0) {
      (void)!::write(STDERR_FILENO, " ", 1);
      write_number(n);
    }
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::raise(signal); // by its default now, see SA_RESETHAND
}

void tell_at_a_bad_end(int days) {
  days_of_each = days;
  struct sigaction action {};
  action.sa_handler = tell_under_way;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT})
    ::sigaction(signal, &action, nullptr);
}

totals run_all(const options& o) {
  totals t;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](unsigned job) {
    give_signal_stack();
    for (auto i = next++; i < o.seeds; i = next++) {
      under_way[job] = o.first + i;
      const auto r = run_seed(o.first + i, o.days);
      under_way[job] = 0;
      const std::lock_guard lock(mutex);
      add(t, r);
      if (o.verbose || !r.violations.empty() || kinds_of(r) < fewest_kinds)
        show(r, o);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned j = 1; j < o.jobs; ++j)
    threads.emplace_back(work, j);
  work(0);
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
  tell_at_a_bad_end(o->days);
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
