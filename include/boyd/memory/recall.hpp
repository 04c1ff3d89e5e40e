#pragma once

#include "boyd/core/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace boyd::memory {

/// One thing to remember.
struct recall_entry {
  std::string id;
  utc_time time{};
  std::string source; ///< day, session or section; its neighbours there are read with it
  std::string author;
  std::string text;
};

/// Estimated tokens of an entry as a prompt shows it, with its day and author.
std::int64_t cost_of(const recall_entry& entry);

/// An entry as the index takes it: its words are found once and may be kept.
struct recall_document {
  std::string id;
  utc_time time{};
  std::string source;
  std::string author;
  std::string terms; ///< in the order of the text, each with a line break behind it
  std::int64_t cost = 0;
};

recall_document document_of(const recall_entry& entry);

/// What earlier questions have taught: a fold over the log of facts.
class recall_feedback {
 public:
  /// These entries were cited, with success, in the answer to `question`. None: nothing is learned.
  void learn(std::string_view question, const std::vector<std::string>& cited);
  /// How much more an entry counts than one without a history, by its importance (docs/context.md).
  void weigh(const std::string& id, double factor) { weights_[id] = factor; }
  const std::unordered_map<std::string, double>& weights() const noexcept { return weights_; }

  std::size_t questions() const noexcept { return questions_; }
  /// How often each entry was cited.
  const std::unordered_map<std::string, std::int64_t>& uses() const noexcept { return use_; }
  /// How well the terms of a question fit those that an entry has served; by entry, above 0 only.
  std::unordered_map<std::string, double>
  fields(const std::vector<std::string>& different_terms) const;

 private:
  std::size_t questions_ = 0;
  std::unordered_map<std::string, double> weights_;
  std::unordered_map<std::string, std::int64_t> use_;
  std::unordered_map<std::string, std::int64_t> with_term_; ///< questions by term
  /// By term and entry: questions with this term that cited the entry.
  std::unordered_map<std::string, std::map<std::string, std::int64_t>> served_;
};

/// The parts of a score (docs/context.md), each but the date divided by its maximum.
struct recall_parts {
  double text = 0;   ///< B: BM25 of the entry
  double window = 0; ///< W: BM25 of the entry with its neighbours
  double author = 0; ///< A: the question names exactly one author, and the entry is theirs
  double date = 0;   ///< D: how well the entry's day fits those of the question

  double core() const noexcept;
};

struct recalled {
  std::size_t place = 0; ///< index of the entry, oldest first
  double score = 0;
  recall_parts parts;
};

/// A question to the memory.
struct recall_question {
  std::string text;
  utc_time at{}; ///< only entries up to then exist
  std::int64_t budget_tokens = 0;
  std::size_t limit = 0;  ///< most entries; 0: what the budget allows
  bool core_only = false; ///< without freshness, use and feedback
};

/// An index over entries for ranked recall: the exact scoring of docs/context.md, as the recall
/// fixture (bench/context) defines it. In memory, without the texts; the owner of the entries fills
/// it from them. Not thread-safe.
class recall_index {
 public:
  recall_index();
  ~recall_index();
  recall_index(recall_index&&) noexcept;
  recall_index& operator=(recall_index&&) noexcept;

  /// In any order; quick for entries that are not older than the newest.
  void add(const recall_document& document);
  void add(const recall_entry& entry) { add(document_of(entry)); }
  std::size_t size() const noexcept;
  /// By age, the oldest first; equal times in the order in which they were added. Places are those
  /// of the latest recall().
  const std::string& id(std::size_t place) const;

  /// The best entries in their order, as far as they fit the budget: one that does not fit is
  /// passed over, and smaller ones behind it may still be taken.
  std::vector<recalled> recall(const recall_question& question, const recall_feedback& feedback);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A day that a question names.
struct named_date {
  int year = 0;  ///< 0: not named
  int month = 0; ///< 0: the year alone
  int day = 0;   ///< 0: the whole month

  bool operator==(const named_date&) const = default;
};

/// The months named in English, each with the year and day that stand by it; without any the years
/// alone. "last week", weekdays and other languages are not read.
std::vector<named_date> dates_in(std::string_view utf8);

/// 0 to 1: how well a moment, and its day, fit the best of the dates.
double date_fit(utc_time when, std::chrono::year_month_day day,
                const std::vector<named_date>& dates);

} // namespace boyd::memory
