#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/memory/recall.hpp"

#include <map>
#include <string>
#include <vector>

/// Quality of recall without a model: the share of annotated evidence inside a budget of tokens
/// (bench/README.md). On any files of the form of bench/context.
namespace boyd::bench {

struct recall_case {
  std::string question;
  std::string kind;
  std::vector<std::string> evidence; ///< ids of the entries that answer it
  utc_time asked_at{};
};

/// Entries: a line {"id", "time", "source"?, "author"?, "text"} each, oldest first. Errors name the
/// line.
result<std::vector<memory::recall_entry>> read_corpus(const std::string& path);
/// Questions in the order of feedback: a line {"q", "evidence", "kind", "asked_at"} each.
result<std::vector<recall_case>> read_cases(const std::string& path);

/// Means over questions, by kind ("all" has all of them) and measure: "recall@4000", "recall@1000",
/// "recall@500", "ndcg@10".
using mean_measures = std::map<std::string, std::map<std::string, double>>;

struct ranker_row {
  std::string name;
  mean_measures means;
};

/// core; the whole score without feedback; with one pass of feedback; with every question again.
std::vector<ranker_row> measure(const std::vector<memory::recall_entry>& corpus,
                                const std::vector<recall_case>& cases);

} // namespace boyd::bench
