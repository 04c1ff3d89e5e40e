#include "bench/soak/soak.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/start.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

/// A node at full speed for minutes: does anything grow? See bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_soak --seconds 600 --store sqlite|postgres://… --json\n"
                       "  --part both      or only queue or cycles; the seconds are each part's\n"
                       "  --agents 0       4 for the queue, 64 in each cycle\n"
                       "  --samples FILE   every sample as a line of CSV\n"
                       "  --dir /var/tmp   where the homes are made (and removed)\n";

/// FAULTS.md: memory is bounded.
constexpr double most_bytes_per_dispatch = 2;
/// The store's keeper answers a health question past the batch that it is at.
constexpr double most_mailbox_ms = 1000;
/// The log is cut back after a checkpoint; between two it may grow by what is written meanwhile.
constexpr std::uint64_t most_wal_bytes = std::uint64_t{64} << 20;
constexpr std::size_t most_drift = 0;
/// A shorter run says nothing about the heap: caches still fill.
constexpr double shortest_for_heap = 240;

struct line {
  std::string name;
  double value = 0;
  double limit = 0;
  double error = 0;    ///< the value's standard error
  bool telling = true; ///< false: the run was too short for a verdict
  /// A short run's slope is mostly noise: it fails when it is certain (two standard errors).
  bool kept() const { return !telling || value - 2 * error <= limit; }
  const char* verdict() const {
    return !telling ? "too short a run" : kept() ? "kept" : "NOT KEPT";
  }
};

/// How far the least value of a figure in the second half stands above the least of the first: what
/// is just being ended when a sample is taken does not count, what stays does.
template <class Get>
double drift(const soak_samples& samples, Get get) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const auto less = [&](const soak_sample& a, const soak_sample& b) { return get(a) < get(b); };
  const std::size_t before = get(*std::min_element(samples.begin(), middle, less));
  const std::size_t after = get(*std::min_element(middle, samples.end(), less));
  return after > before ? static_cast<double>(after - before) : 0;
}

std::vector<line> judge(const soak_samples& all) {
  double mailbox = 0;
  std::uint64_t wal = 0;
  for (const auto& s : all) {
    mailbox = std::max(mailbox, s.mailbox_ms);
    wal = std::max(wal, s.wal_bytes);
  }
  constexpr auto none = static_cast<double>(most_drift);
  const auto of = [&](auto get) { return drift(all, get); };
  const auto heap = slope_per_dispatch(all, &process_state::heap_bytes);
  std::vector<line> lines{
      {"heap, bytes per dispatch", heap.value, most_bytes_per_dispatch, heap.error,
       all.back().seconds >= shortest_for_heap},
      {"descriptors gained", of([](const auto& s) { return s.process.descriptors; }), none},
      {"threads gained", of([](const auto& s) { return s.process.threads; }), none},
      {"children gained", of([](const auto& s) { return s.process.children; }), none},
      {"actors gained at rest", of([](const auto& s) { return s.actors; }), none},
      {"WAL, bytes at most", static_cast<double>(wal), static_cast<double>(most_wal_bytes)}};
  if (mailbox > 0)
    lines.push_back({"mailbox wait at most, ms", mailbox, most_mailbox_ms});
  return lines;
}

void write_samples(const std::string& file, const char* part, const soak_samples& all) {
  auto* out = std::fopen(file.c_str(), "ae");
  if (out == nullptr)
    return;
  for (const auto& s : all)
    std::fprintf(out, "%s,%.2f,%llu,%llu,%llu,%zu,%zu,%zu,%zu,%llu,%.3f\n", part, s.seconds,
                 static_cast<unsigned long long>(s.dispatches),
                 static_cast<unsigned long long>(s.process.heap_bytes),
                 static_cast<unsigned long long>(s.process.resident_bytes), s.process.descriptors,
                 s.process.threads, s.process.children, s.actors,
                 static_cast<unsigned long long>(s.wal_bytes), s.mailbox_ms);
  std::fclose(out);
}

nlohmann::json report(const char* part, const soak_samples& all, bool print) {
  const auto& last = all.back();
  const auto count = static_cast<double>(last.dispatches);
  nlohmann::json out{{"seconds", last.seconds},
                     {"dispatches", last.dispatches},
                     {"dispatches_per_s", count / last.seconds},
                     {"resident_bytes_per_dispatch",
                      slope_per_dispatch(all, &process_state::resident_bytes).value},
                     {"resident_bytes", last.process.resident_bytes}};
  if (print)
    std::printf("%s: %.0f s, %.0f dispatches (%.0f/s), resident at the end %.1f MiB\n", part,
                last.seconds, count, count / last.seconds,
                static_cast<double>(last.process.resident_bytes) / (1024.0 * 1024.0));
  bool kept = true;
  for (const auto& l : judge(all)) {
    kept = kept && l.kept();
    out["lines"].push_back({{"name", l.name},
                            {"value", l.value},
                            {"error", l.error},
                            {"limit", l.limit},
                            {"verdict", l.verdict()}});
    if (print)
      std::printf("  %-26s %14.3f ± %-8.3f limit %12.0f   %s\n", l.name.c_str(), l.value, l.error,
                  l.limit, l.verdict());
  }
  out["kept"] = kept;
  return out;
}

result<void> run(const arguments& args) {
  constexpr std::size_t longest = 7 * 24 * 3600;
  constexpr std::size_t most_agents = 10'000;
  constexpr std::size_t least_samples = 4;
  soak_settings s;
  s.store = args.text("--store", "sqlite");
  s.directory = args.text("--dir", "/var/tmp");
  s.seconds = static_cast<double>(args.number("--seconds", 600, longest));
  const auto part = args.text("--part", "both");
  if (part != "both" && part != "queue" && part != "cycles")
    return fail(errc::invalid_argument, "unknown part", part, "give queue, cycles or both");
  nlohmann::json out{{"schema", "boyd.bench.soak/1"}};
  bool kept = true;
  struct {
    const char* name;
    std::size_t agents;
    result<soak_samples> (*soak)(const soak_settings&);
  } const parts[] = {{"queue", 4, soak_queue}, {"cycles", 64, soak_cycles}};
  for (const auto& p : parts) {
    if (part != "both" && part != p.name)
      continue;
    s.agents = args.number("--agents", p.agents, most_agents);
    auto samples = p.soak(s);
    if (!samples)
      return fail(std::move(samples.error()));
    if (samples->size() < least_samples)
      return fail(errc::invalid_argument, "too few samples", p.name, "give more --seconds");
    if (args.has("--samples"))
      write_samples(args.text("--samples", {}), p.name, *samples);
    out[p.name] = report(p.name, *samples, !args.has("--json"));
    kept = kept && out[p.name]["kept"].get<bool>();
  }
  if (args.has("--json"))
    std::printf("%s\n", out.dump(2).c_str());
  if (!kept)
    return fail(errc::refused, "a limit was not kept");
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_soak",
                usage,
                {"--seconds", "--store", "--part", "--agents", "--samples", "--dir"},
                run});
}
