#include "actors/knowledge/performer.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/segments.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/knowledge_index.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// What it costs to index the log of facts, and to ask about it, on the path that a node takes.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_graph --facts 1000000 --queries 200 --dir /var/tmp --json\n";

constexpr unsigned seed = 4711;
constexpr std::size_t contexts_of_run = 8;
constexpr std::size_t different_contexts = 20'000;
constexpr std::size_t runs_between_promotions = 5'000;
constexpr std::size_t runs_of_cycle = 4;
constexpr std::size_t kernels = 5;
constexpr std::size_t projects = 10;
constexpr std::size_t banked_of_project = 5;
/// The id of a project's first commit, but for its last digit.
constexpr const char* scope_before_number = "repo:3f786850e387550fdab836ed7e6dc881de23001";
constexpr const char* hash_of_content =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// Runs with their contexts, decisions and outcomes, as a node writes them.
class drawn_log {
 public:
  drawn_log(std::string folder, utc_time begin) : folder_(std::move(folder)), now_(begin) {
    open();
  }

  result<void> write(std::size_t facts) {
    while (written_ < facts)
      if (auto done = write_run(); !done)
        return done;
    file_.close();
    return file_ ? result<void>{} : fail(errc::io_error, "the log cannot be written", folder_);
  }

  std::size_t runs() const { return runs_; }
  std::size_t facts() const { return written_; }
  std::uint64_t bytes() const { return all_bytes_; }
  std::uint32_t segments() const { return segment_.number; }

 private:
  void open() { file_.open(folder_ + "/" + segment_.name(), std::ios::binary); }

  result<void> put(const graph::edge& e) {
    auto line = chain_.append(e);
    if (!line)
      return fail(std::move(line.error()));
    if (bytes_ + line->size() + 1 > graph::segment_bytes) {
      file_.close();
      ++segment_.number;
      bytes_ = 0;
      open();
    }
    file_ << *line << '\n';
    bytes_ += line->size() + 1;
    all_bytes_ += line->size() + 1;
    ++written_;
    return {};
  }

  /// In a node's order: what the planner decided, what the run was given, how it ended.
  result<void> write_run() {
    now_ += 1s;
    const auto id = std::to_string(runs_);
    const auto execution = "exec_0198d2a4-0000-7000-8000-" + std::string(12 - id.size(), '0') + id;
    const auto cycle = runs_ / runs_of_cycle;
    const auto project = cycle % projects;
    const auto kernel = "kernel" + std::to_string(cycle % kernels);
    const auto agent = "agent" + std::to_string(runs_ % runs_of_cycle);
    ++runs_;
    const auto decided =
        nlohmann::json{{"agent", agent}, {"kernel", kernel}, {"planner", "static"}};
    if (auto done = put(
            {execution, "decision_" + std::to_string(cycle), "decided_by", now_, decided.dump()});
        !done)
      return done;
    for (std::size_t i = 0; i < contexts_of_run; ++i)
      if (auto done = write_use(execution, kernel, project); !done)
        return done;
    const bool good = random_() % 5 != 0; // NOLINT(readability-magic-numbers)
    const auto meta = nlohmann::json{{"agent", agent},
                                     {"attempt", 1},
                                     {"claim", "none"},
                                     {"class", good ? "none" : "deterministic"},
                                     {"execution", good ? "succeeded" : "failed"},
                                     {"fence", 1},
                                     {"kernel", kernel},
                                     {"status", good ? "done" : "failed"},
                                     {"verification", "none"}};
    if (auto done = put({execution, "outcome_" + id, "resulted_in", now_, meta.dump()});
        !done || runs_ % runs_between_promotions != 0)
      return done;
    return put({"ctx_" + std::to_string(random_() % 100), // NOLINT(readability-magic-numbers)
                "skill_" + id, "promoted_to", now_, R"({"by":"a person"})"});
  }

  /// Of a text of the project; a few are in many runs, and come from the bank.
  result<void> write_use(const std::string& execution, const std::string& kernel,
                         std::size_t project) {
    const auto place = random_() % (1 + random_() % (different_contexts / projects));
    const auto name = std::to_string(project + projects * place);
    const bool cited = random_() % 3 == 0;
    auto meta = nlohmann::json{{"as", "full"},
                               {"cited", cited},
                               {"fence", 1},
                               {"from", place < banked_of_project ? "bank" : "declared"},
                               {"hash", hash_of_content},
                               {"kernel", kernel},
                               {"path", "src/part" + name + ".cpp"},
                               {"scope", scope_before_number + std::to_string(project)},
                               {"section", "high"},
                               {"type", "file"},
                               {"used", cited}};
    if (cited)
      meta["accuracy"] = 1.0;
    return put({"ctx_" + name, execution, "used_in", now_, meta.dump()});
  }

  std::string folder_;
  utc_time now_;
  graph::segment segment_;
  graph::edge_chain chain_;
  std::ofstream file_;
  std::mt19937_64 random_{seed};
  std::size_t runs_ = 0;
  std::size_t written_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t all_bytes_ = 0;
};

/// Seconds until the whole answer is there.
template <class What>
result<double> ask(knowledge_session& session, const What& what) {
  const auto since = stopwatch_clock::now();
  for (;;) {
    std::vector<job<knowledge_request, knowledge_reply>> batch;
    knowledge_request request;
    request.what = what;
    batch.emplace_back(std::move(request));
    session.perform(batch);
    const auto& reply = batch.front().reply;
    if (!reply)
      return fail(reply.error());
    if (!reply->goes_on)
      return seconds_since(since);
  }
}

std::string execution_numbered(std::size_t n) {
  const auto id = std::to_string(n);
  return "0198d2a4-0000-7000-8000-" + std::string(12 - id.size(), '0') + id;
}

/// One question of each kind.
std::vector<std::pair<std::string, inspect_graph>> questions(std::mt19937_64& random,
                                                             std::size_t runs) {
  using kind = inspect_graph::kind;
  inspect_graph trace;
  trace.what = kind::trace;
  trace.subject = execution_numbered(random() % runs);
  auto why = trace;
  why.what = kind::why;
  inspect_graph facts;
  facts.what = kind::query;
  facts.from = "ctx_" + std::to_string(random() % 200); // NOLINT(readability-magic-numbers)
  facts.most = 50;                                      // NOLINT(readability-magic-numbers)
  inspect_graph around;
  around.what = kind::picture;
  around.subject = "exec_" + execution_numbered(random() % runs);
  around.most = 20; // NOLINT(readability-magic-numbers)
  inspect_graph all;
  all.what = kind::stats;
  all.most = 50; // NOLINT(readability-magic-numbers)
  auto review = all;
  review.what = kind::findings;
  return {{"trace", trace},    {"why", why},   {"query", facts},
          {"picture", around}, {"stats", all}, {"findings", review}};
}

std::shared_ptr<node_context> node_in(const std::string& home) {
  auto node = std::make_shared<node_context>();
  node->home = home;
  node->ports.files = adapters::make_posix_file_system();
  node->ports.clock = adapters::make_system_clock();
  node->ports.make_knowledge_index = adapters::make_sqlite_knowledge_index;
  return node;
}

result<void> run(const arguments& args) {
  constexpr std::size_t most = 100'000'000;
  constexpr double milli = 1000;
  const auto facts = args.number("--facts", 1'000'000, most);
  const auto queries = args.number("--queries", 200, most);
  auto scratch = scratch_directory::make(args.text("--dir", "/var/tmp"));
  if (!scratch)
    return fail(scratch.error());
  const auto node = node_in((*scratch)->path());
  if (auto made = node->ports.files->make_directories(node->layout().knowledge()); !made)
    return made;
  drawn_log log(node->layout().knowledge(), *parse_rfc3339("2025-01-01T00:00:00Z"));
  if (auto written = log.write(facts); !written)
    return written;
  inspect_graph first;
  first.what = inspect_graph::kind::query;
  first.most = 1;
  nlohmann::json out{{"schema", "boyd.bench.graph/1"},
                     {"facts", log.facts()},
                     {"segments", log.segments()},
                     {"log_bytes", log.bytes()}};
  {
    knowledge_session session(node);
    const auto before = processor_seconds();
    const auto seconds = ask(session, first);
    if (!seconds)
      return fail(seconds.error());
    out["index_seconds"] = *seconds;
    out["facts_per_second"] = static_cast<double>(log.facts()) / *seconds;
    out["facts_per_cpu_second"] = static_cast<double>(log.facts()) / (processor_seconds() - before);
    out["index_resident_mib"] = peak_resident_mib();
  }
  knowledge_session session(node);
  const auto loaded = ask(session, first);
  if (!loaded)
    return fail(loaded.error());
  out["load_ms"] = *loaded * milli;
  std::mt19937_64 random(seed);
  std::map<std::string, std::vector<double>> ms;
  for (std::size_t i = 0; i < queries; ++i)
    for (const auto& [name, question] : questions(random, log.runs())) {
      const auto seconds = ask(session, question);
      if (!seconds)
        return fail(seconds.error());
      ms[name].push_back(*seconds * milli);
    }
  // Of every item of a kernel, whatever the log: fewer are enough.
  constexpr std::size_t most_judged = 20;
  for (std::size_t i = 0; i < std::min(queries, most_judged); ++i) {
    const auto seconds = ask(session, judge_memory{"kernel1"});
    if (!seconds)
      return fail(seconds.error());
    ms["memory status"].push_back(*seconds * milli);
  }
  for (const auto& [name, all] : ms)
    out["questions"][name] = {{"ms", median(all)}, {"p99_ms", percentile(all, 99)}}; // NOLINT
  out["questions_resident_mib"] = peak_resident_mib();
  replay_policy other;
  other.numbers.plan.most_runs = 1;
  other.numbers.stages.bank_referenced *= 2;
  const auto before = processor_seconds();
  const auto replayed = ask(session, other);
  if (!replayed)
    return fail(replayed.error());
  out["replay_seconds"] = *replayed;
  out["replay_cpu_seconds"] = processor_seconds() - before;
  if (const auto info = node->ports.files->stat(node->layout().knowledge_index()))
    out["index_bytes"] = info->size;
  out["replay_resident_mib"] = peak_resident_mib();
  out["load_average"] = load_average();
  std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv, {"bench_graph", usage, {"--facts", "--queries", "--dir"}, run});
}
