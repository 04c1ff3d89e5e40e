#include "bench/curves/curves.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/start.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

/// How a node's costs grow with what it holds. See bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage =
    "bench_curves --what done|backlog|commits|waiting --store sqlite|postgres://… --json\n"
    "  --most N           rows, commits or runs at the end: 1000000 rows, 10000 commits,\n"
    "                     10000 waiting runs\n"
    "  --window 50000     dispatches measured at each point (commits: 50 cycles)\n"
    "  --max-concurrent 1024\n"
    "  --dir /var/tmp     where the homes are made (and removed)\n";

struct curve {
  std::string_view name;
  std::size_t most = 0;
  std::size_t window = 0;
  result<curve_points> (*measure)(const curve_settings&);
};

constexpr std::array<curve, 4> curves{{{"done", 1'000'000, 50'000, cost_by_finished_rows},
                                       {"backlog", 1'000'000, 0, cost_by_backlog},
                                       {"commits", 10'000, 50, cost_by_commits},
                                       {"waiting", 10'000, 0, memory_of_waiting_runs}}};

void print(const curve_points& points) {
  for (const auto& [name, value] : points.front().values)
    std::printf("%24s", name.c_str());
  std::printf("\n");
  for (const auto& point : points) {
    for (const auto& [name, value] : point.values)
      std::printf("%24.2f", value);
    std::printf("\n");
  }
}

/// Ordered: the size comes first, as in the table.
nlohmann::ordered_json to_json(const curve_points& points) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& point : points) {
    auto& one = all.emplace_back(nlohmann::ordered_json::object());
    for (const auto& [name, value] : point.values)
      one[name] = value;
  }
  return all;
}

result<void> run(const arguments& args) {
  constexpr std::size_t most_of_all = 100'000'000;
  constexpr std::size_t most_at_once = 100'000;
  const auto what = args.text("--what", "done");
  for (const auto& c : curves) {
    if (c.name != what)
      continue;
    curve_settings s;
    s.store = args.text("--store", "sqlite");
    s.directory = args.text("--dir", "/var/tmp");
    s.most = args.number("--most", c.most, most_of_all);
    s.window = args.number("--window", c.window, most_of_all);
    s.max_concurrent = args.number("--max-concurrent", s.max_concurrent, most_at_once);
    auto points = c.measure(s);
    if (!points)
      return fail(std::move(points.error()));
    if (!args.has("--json")) {
      print(*points);
      return {};
    }
    const nlohmann::ordered_json out{{"schema", "boyd.bench.curves/1"},
                                     {"what", what},
                                     {"store", s.store == "sqlite" ? "sqlite" : "postgres"},
                                     {"points", to_json(*points)}};
    std::printf("%s\n", out.dump(2).c_str());
    return {};
  }
  return fail(errc::invalid_argument, "there is no curve " + what, {}, usage);
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_curves",
                usage,
                {"--what", "--store", "--most", "--window", "--max-concurrent", "--dir"},
                run});
}
