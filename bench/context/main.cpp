#include "bench/context/measure.hpp"
#include "bench/context/speed.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

/// Recall: how much of the evidence it finds, and how fast.
namespace boyd::bench {

namespace {

constexpr auto usage =
    "bench_context --corpus bench/context/corpus.jsonl --questions bench/context/questions.jsonl "
    "--entries 100000 --queries 200 --dir /var/tmp --what both|quality|speed --json\n";

std::vector<std::string> kinds_of(const std::vector<recall_case>& cases) {
  std::vector<std::string> kinds{"all"};
  for (const auto& c : cases)
    if (std::find(kinds.begin(), kinds.end(), c.kind) == kinds.end())
      kinds.push_back(c.kind);
  return kinds;
}

void print_table(const std::vector<ranker_row>& rows, const std::vector<std::string>& kinds) {
  for (const char* name : {"recall@4000", "recall@1000", "recall@500", "ndcg@10"}) {
    std::string head = std::string("| ") + name + " |";
    std::string line = "|---|";
    for (const auto& kind : kinds) {
      head += " " + kind + " |";
      line += "---|";
    }
    std::printf("%s\n%s\n", head.c_str(), line.c_str());
    for (const auto& row : rows) {
      std::printf("| %s |", row.name.c_str());
      for (const auto& kind : kinds)
        std::printf(" %.3f |", row.means.at(kind).at(name));
      std::printf("\n");
    }
    std::printf("\n");
  }
}

result<void> run_quality(const arguments& args, nlohmann::json& out) {
  const auto corpus = read_corpus(args.text("--corpus", "bench/context/corpus.jsonl"));
  if (!corpus)
    return fail(corpus.error());
  const auto cases = read_cases(args.text("--questions", "bench/context/questions.jsonl"));
  if (!cases)
    return fail(cases.error());
  const auto rows = measure(*corpus, *cases);
  for (const auto& row : rows)
    out["quality"][row.name] = row.means;
  if (!args.has("--json"))
    print_table(rows, kinds_of(*cases));
  return {};
}

result<void> run_speed(const arguments& args, nlohmann::json& out) {
  constexpr std::size_t most = 10'000'000;
  const auto entries = args.number("--entries", 100'000, most);
  const auto queries = args.number("--queries", 200, most);
  auto scratch = scratch_directory::make(args.text("--dir", "/var/tmp"));
  if (!scratch)
    return fail(scratch.error());
  const auto speed = measure_speed((*scratch)->path(), entries, queries);
  if (!speed)
    return fail(speed.error());
  out["speed"] = {{"entries", entries},
                  {"index_seconds", speed->index_seconds},
                  {"load_seconds", speed->load_seconds},
                  {"query_ms", speed->query_ms},
                  {"query_p99_ms", speed->query_p99_ms},
                  {"index_cpu_seconds", speed->index_cpu_seconds},
                  {"load_cpu_seconds", speed->load_cpu_seconds},
                  {"query_cpu_ms", speed->query_cpu_ms},
                  {"index_mib", speed->index_mib},
                  {"resident_mib", speed->resident_mib},
                  {"load_average", load_average()}};
  if (!args.has("--json"))
    std::printf("%zu entries: indexed in %.2f s, loaded by the next process in %.2f s; a question "
                "takes %.2f ms (p99 %.2f ms); %.0f MiB on the disk, %.0f MiB resident\n"
                "of one core: %.2f s, %.2f s, %.2f ms\n",
                entries, speed->index_seconds, speed->load_seconds, speed->query_ms,
                speed->query_p99_ms, speed->index_mib, speed->resident_mib,
                speed->index_cpu_seconds, speed->load_cpu_seconds, speed->query_cpu_ms);
  return {};
}

result<void> run(const arguments& args) {
  nlohmann::json out{{"schema", "boyd.bench.context/1"}};
  const auto what = args.text("--what", "both");
  if (what != "speed")
    if (auto done = run_quality(args, out); !done)
      return done;
  if (what != "quality")
    if (auto done = run_speed(args, out); !done)
      return done;
  if (args.has("--json"))
    std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_context",
                usage,
                {"--corpus", "--questions", "--entries", "--queries", "--dir", "--what"},
                run});
}
