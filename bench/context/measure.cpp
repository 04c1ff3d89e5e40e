#include "bench/context/measure.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <utility>

namespace boyd::bench {

namespace {

using memory::recall_feedback;
using memory::recall_index;
using nlohmann::json;

constexpr std::int64_t budgets[] = {4000, 1000, 500};
constexpr std::int64_t feedback_budget = 4000;
constexpr std::size_t ranks = 10; ///< of nDCG

result<void> each_line(const std::string& path, const std::function<void(const json&)>& take) {
  std::ifstream in(path);
  if (!in)
    return fail(errc::not_found, "the file cannot be opened", path);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty())
      continue;
    try {
      take(json::parse(line));
    } catch (const std::exception& e) {
      return fail(errc::parse_error, e.what(), path + ":" + std::to_string(number));
    }
  }
  return {};
}

utc_time time_of(const json& object, const char* key) {
  const auto t = parse_rfc3339(object.at(key).get<std::string>());
  if (!t)
    throw std::invalid_argument(to_string(t.error()));
  return *t;
}

/// One index for each moment at which questions are asked would hold the same entries: the index
/// itself knows only those of the moment.
std::vector<std::string> ranked(recall_index& index, const recall_case& c,
                                const recall_feedback& feedback, bool core_only,
                                std::int64_t budget, std::size_t limit = 0) {
  std::vector<std::string> ids;
  for (const auto& r : index.recall({c.question, c.asked_at, budget, limit, core_only}, feedback))
    ids.push_back(index.id(r.place));
  return ids;
}

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

double gain(std::size_t rank) {
  constexpr double first = 2; // ranks count from 0
  return 1 / std::log2(static_cast<double>(rank) + first);
}

std::map<std::string, double> measures_of(recall_index& index, const recall_case& c,
                                          const recall_feedback& feedback, bool core_only) {
  std::map<std::string, double> out;
  for (const auto budget : budgets) {
    const auto taken = ranked(index, c, feedback, core_only, budget);
    const auto found =
        std::ranges::count_if(c.evidence, [&](const auto& id) { return has(taken, id); });
    out["recall@" + std::to_string(budget)] =
        static_cast<double>(found) / static_cast<double>(c.evidence.size());
  }
  const auto top =
      ranked(index, c, feedback, core_only, std::numeric_limits<std::int64_t>::max(), ranks);
  double sum = 0;
  double ideal = 0;
  for (std::size_t i = 0; i < top.size(); ++i)
    sum += has(c.evidence, top[i]) ? gain(i) : 0;
  for (std::size_t i = 0; i < std::min(ranks, c.evidence.size()); ++i)
    ideal += gain(i);
  out["ndcg@10"] = sum / ideal;
  return out;
}

enum class learning : bool { no, yes };

ranker_row run(const std::string& name, recall_index& index, const std::vector<recall_case>& cases,
               recall_feedback& feedback, bool core_only, learning learns) {
  ranker_row row{name, {}};
  std::map<std::string, std::size_t> counts;
  for (const auto& c : cases) {
    for (const auto& [measure, value] : measures_of(index, c, feedback, core_only))
      for (const auto& kind : {std::string("all"), c.kind})
        row.means[kind][measure] += value;
    ++counts["all"];
    ++counts[c.kind];
    if (learns == learning::no)
      continue;
    const auto taken = ranked(index, c, feedback, core_only, feedback_budget);
    std::vector<std::string> cited;
    for (const auto& id : c.evidence)
      if (has(taken, id))
        cited.push_back(id);
    feedback.learn(c.question, cited);
  }
  for (auto& [kind, measures] : row.means)
    for (auto& [measure, sum] : measures)
      sum /= static_cast<double>(counts[kind]);
  return row;
}

} // namespace

result<std::vector<memory::recall_entry>> read_corpus(const std::string& path) {
  std::vector<memory::recall_entry> all;
  auto read = each_line(path, [&](const json& e) {
    all.push_back({e.at("id").get<std::string>(), time_of(e, "time"), e.value("source", ""),
                   e.value("author", ""), e.at("text").get<std::string>()});
  });
  if (!read)
    return fail(std::move(read.error()));
  return all;
}

result<std::vector<recall_case>> read_cases(const std::string& path) {
  std::vector<recall_case> all;
  auto read = each_line(path, [&](const json& q) {
    all.push_back({q.at("q").get<std::string>(), q.value("kind", "all"),
                   q.at("evidence").get<std::vector<std::string>>(), time_of(q, "asked_at")});
    if (all.back().evidence.empty())
      throw std::invalid_argument("a question without evidence measures nothing");
  });
  if (!read)
    return fail(std::move(read.error()));
  return all;
}

std::vector<ranker_row> measure(const std::vector<memory::recall_entry>& corpus,
                                const std::vector<recall_case>& cases) {
  recall_index index;
  for (const auto& e : corpus)
    index.add(e);
  recall_feedback none;
  recall_feedback learned;
  std::vector<ranker_row> rows;
  rows.push_back(run("core", index, cases, none, true, learning::no));
  rows.push_back(run("whole score, no feedback", index, cases, none, false, learning::no));
  rows.push_back(
      run("whole score, one pass of feedback", index, cases, learned, false, learning::yes));
  rows.push_back(
      run("whole score, every question again", index, cases, learned, false, learning::no));
  return rows;
}

} // namespace boyd::bench
