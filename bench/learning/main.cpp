#include "bench/support/arguments.hpp"
#include "bench/support/start.hpp"
#include "boyd/context/confidence.hpp"
#include "boyd/graph/learned.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// What the ways to learn an item's confidence lose against one who knows: generated histories,
/// through the fold of the log and the formula that ranks items.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_learning --items 40 --given 5 --runs 400 --histories 20 --json\n";

using context::learning_method;

/// How the items of a history behave.
enum class world { steady, changing, crowded };

const char* name_of(world w) {
  return w == world::steady ? "steady" : w == world::changing ? "changing" : "crowded";
}

struct size_of_history {
  std::size_t items = 0;
  std::size_t given = 0;
  std::size_t runs = 0;
};

/// The shares of runs that go well with each item. `crowded`: few are of use.
class nature {
 public:
  nature(world w, std::size_t items, std::uint64_t seed) : world_(w), random_(seed), good_(items) {
    draw();
  }

  double share(std::size_t item) const { return good_[item]; }
  bool goes_well(std::size_t item) { return unit() < good_[item]; }
  /// What the best so many are worth together.
  double best(std::size_t given) const {
    auto all = good_;
    std::ranges::sort(all, std::greater<>());
    double sum = 0;
    for (std::size_t i = 0; i < std::min(given, all.size()); ++i)
      sum += all[i];
    return sum;
  }
  /// In the middle of a changing history, all are drawn anew.
  void run(std::size_t number, std::size_t of) {
    if (world_ == world::changing && number == of / 2)
      draw();
  }

 private:
  double unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void draw() {
    constexpr double useful = 0.15;
    for (auto& g : good_)
      g = world_ != world::crowded ? unit() : unit() < useful ? 0.9 : 0.2; // NOLINT
  }

  world world_;
  std::mt19937_64 random_;
  std::vector<double> good_;
};

/// What a node learns of it.
class student {
 public:
  explicit student(learning_method method) : method_(method) {}

  /// The items with the highest importance, as a run ranks them.
  std::vector<std::size_t> choose(std::size_t items, std::size_t given, std::uint64_t seed,
                                  utc_time now) const {
    std::vector<std::pair<double, std::size_t>> ranked;
    for (std::size_t i = 0; i < items; ++i) {
      const auto id = id_of(i);
      const auto it = known_.find(id);
      context::item_statistics s;
      s.confidence = context::first_confidence(context::item_type::file, true);
      s.created = now;
      if (it != known_.end())
        s = it->second.counts;
      s.confidence = context::confidence_of(s, id, {method_, seed});
      ranked.emplace_back(-context::importance(s, now), i);
    }
    std::ranges::sort(ranked);
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < std::min(given, items); ++i)
      chosen.push_back(ranked[i].second);
    return chosen;
  }

  /// One run that used the item, and how it ended.
  result<void> learn(std::size_t item, bool good, utc_time at) {
    const auto run = "exec_" + std::to_string(++runs_);
    const nlohmann::json used{
        {"cited", true}, {"used", true}, {"fence", 1}, {"from", "declared"}, {"type", "file"}};
    const nlohmann::json ended{{"class", good ? "none" : "deterministic"},
                               {"execution", good ? "succeeded" : "failed"},
                               {"fence", 1},
                               {"status", good ? "done" : "failed"},
                               {"verification", good ? "passed" : "failed"}};
    if (auto done = fold_.take({id_of(item), run, "used_in", at, used.dump()}, 2 * runs_); !done)
      return done;
    if (auto done =
            fold_.take({run, "outcome_" + run, "resulted_in", at, ended.dump()}, 2 * runs_ + 1);
        !done)
      return done;
    for (const auto& c : fold_.take_changes())
      if (c.area == index_area::items && c.value)
        if (const auto learned = graph::read_learned_item(*c.value))
          known_[c.key] = *learned;
    return {};
  }

 private:
  static std::string id_of(std::size_t item) { return "ctx_" + std::to_string(item); }

  learning_method method_;
  std::map<std::string, graph::learned_item> known_;
  std::uint64_t runs_ = 0;
  graph::learner fold_{{}, [](index_area, const std::string&) {
                         return result<std::optional<std::string>>(std::nullopt);
                       }};
};

/// What it lost, of what the best choice is worth: 0 to 1.
result<double> regret_of(learning_method method, world w, const size_of_history& size,
                         std::uint64_t seed) {
  nature items(w, size.items, seed);
  student learns(method);
  auto now = *parse_rfc3339("2026-01-01T00:00:00Z");
  double lost = 0;
  double best = 0;
  for (std::size_t run = 0; run < size.runs; ++run, now += std::chrono::hours{1}) {
    items.run(run, size.runs);
    const auto chosen = learns.choose(size.items, size.given, seed * 1'000'003 + run, now);
    best += items.best(size.given);
    lost += items.best(size.given);
    for (const auto i : chosen) {
      lost -= items.share(i);
      if (auto done = learns.learn(i, items.goes_well(i), now); !done)
        return fail(std::move(done.error()));
    }
  }
  return lost / best;
}

result<void> run(const arguments& args) {
  constexpr std::size_t most = 100'000;
  const size_of_history size{args.number("--items", 40, most), args.number("--given", 5, most),
                             args.number("--runs", 400, most)};
  const auto histories = args.number("--histories", 20, most);
  nlohmann::json out{{"schema", "boyd.bench.learning/1"},
                     {"items", size.items},
                     {"given", size.given},
                     {"runs", size.runs},
                     {"histories", histories}};
  for (const auto w : {world::steady, world::changing, world::crowded})
    for (const auto m : {learning_method::linear, learning_method::ema, learning_method::bandit}) {
      double sum = 0;
      for (std::size_t h = 1; h <= histories; ++h) {
        const auto lost = regret_of(m, w, size, h);
        if (!lost)
          return fail(lost.error());
        sum += *lost;
      }
      out["regret"][name_of(w)][std::string(context::name_of(m))] =
          sum / static_cast<double>(histories);
    }
  std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_learning", usage, {"--items", "--given", "--runs", "--histories"}, run});
}
