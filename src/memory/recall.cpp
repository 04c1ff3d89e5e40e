#include "boyd/memory/recall.hpp"

#include "boyd/memory/words.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace boyd::memory {

namespace {

// BM25, and the weights of docs/context.md.
constexpr double k1 = 0.9;
constexpr double length_part = 0.4; ///< b
constexpr double weight_window = 1.0;
constexpr double weight_author = 0.7;
constexpr double weight_date = 1.0;
constexpr double half_life_days = 7.0;
constexpr double fresh = 0.1;
constexpr double use_weight = 0.1;
constexpr double field_weight = 0.2;
/// Neighbours on each side that are read with an entry.
constexpr std::size_t reach = 4;
/// Characters of the shortest word that may name an author.
constexpr std::size_t shortest_name = 3;
/// The best so many are sorted first; mostly a budget holds no more.
constexpr std::size_t sorted_first = 256;

double idf(double documents, double with_term) {
  constexpr double half = 0.5;
  return std::log(1 + (documents - with_term + half) / (with_term + half));
}

std::size_t characters(std::string_view utf8) {
  constexpr unsigned continuation = 0x80;
  constexpr unsigned mask = 0xC0;
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & mask) != continuation; }));
}

struct posting {
  std::uint32_t place = 0;
  std::uint32_t count = 0;
};

/// The entries of one source, oldest first.
struct source_entries {
  std::vector<std::uint32_t> places;
  std::vector<std::uint64_t> length_before{0}; ///< terms in all entries before
};

constexpr auto nowhere = std::numeric_limits<std::uint32_t>::max();

struct author_entries {
  std::uint32_t first_place = nowhere;
  std::vector<std::string> names; ///< words that may name the author
};

/// What the index keeps of an entry.
struct indexed_entry {
  std::string id;
  utc_time time{};
  std::chrono::year_month_day day;
  std::uint32_t source = 0;
  std::uint32_t place_in_source = 0;
  std::uint32_t author = 0;
  std::uint32_t length = 0;   ///< terms
  std::size_t first_term = 0; ///< among the terms of all
  std::int64_t cost = 0;
};

/// Numbers for texts, from 0.
class numbering {
 public:
  std::uint32_t number_of(std::string_view text) {
    if (const auto it = numbers_.find(text); it != numbers_.end())
      return it->second;
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    numbers_.emplace(text, next);
    return next;
  }
  std::optional<std::uint32_t> find(std::string_view text) const {
    const auto it = numbers_.find(text);
    return it == numbers_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, hash, std::equal_to<>> numbers_;
};

/// The entries that exist at a moment, source by source: those whose windows touch are neighbours.
struct windows {
  std::size_t entries = 0;           ///< that exist
  std::vector<std::uint32_t> begin;  ///< by source: its first position
  std::vector<std::uint32_t> end;    ///< by source: behind its last
  std::vector<std::uint32_t> place;  ///< by position
  std::vector<double> norm;          ///< by position: of the window's length, for BM25
  std::vector<std::int32_t> changes; ///< scratch, all 0 between uses: beginnings and ends of counts
  std::vector<std::int32_t> counts;  ///< scratch, all 0 between uses

  /// The positions of the windows that an entry is part of: from the first to behind the last.
  std::pair<std::size_t, std::size_t> reach_of(std::uint32_t source, std::size_t in_source) const {
    const std::size_t first = begin[source];
    const auto at = first + in_source;
    return {std::max(first, at > reach ? at - reach : 0),
            std::min<std::size_t>(end[source], at + reach + 1)};
  }
};

/// The part of BM25's divisor that depends on a document's length.
double norm_of(double length, double average) {
  return k1 * (1 - length_part + length_part * length / average);
}

void divide_by_maximum(std::vector<double>& scores) {
  const auto most = scores.empty() ? 0.0 : *std::ranges::max_element(scores);
  if (most > 0)
    for (auto& s : scores)
      s /= most;
}

/// Terms with their counts, in the order of their first occurrence.
std::vector<std::pair<std::string, int>> bag_of(std::vector<std::string> terms) {
  std::vector<std::pair<std::string, int>> bag;
  for (auto& t : terms) {
    const auto it = std::ranges::find(bag, t, &std::pair<std::string, int>::first);
    if (it != bag.end())
      ++it->second;
    else
      bag.emplace_back(std::move(t), 1);
  }
  return bag;
}

} // namespace

std::int64_t cost_of(const recall_entry& entry) {
  static constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using namespace std::chrono;
  const year_month_day day{floor<days>(entry.time)};
  return count_tokens("[" + std::to_string(static_cast<unsigned>(day.day())) + " " +
                      months.at(static_cast<unsigned>(day.month()) - 1) + " " +
                      std::to_string(static_cast<int>(day.year())) + "] " +
                      (entry.author.empty() ? "" : entry.author + ": ") + entry.text);
}

recall_document document_of(const recall_entry& entry) {
  recall_document d{entry.id, entry.time, entry.source, entry.author, {}, cost_of(entry)};
  for (const auto& term : terms_in(entry.text))
    d.terms += term + '\n';
  return d;
}

double recall_parts::core() const noexcept {
  return text + weight_window * window + weight_author * author + weight_date * date;
}

// -- feedback -------------------------------------------------------------------------------------

void recall_feedback::learn(std::string_view question, const std::vector<std::string>& cited) {
  if (cited.empty())
    return;
  ++questions_;
  for (const auto& [term, count] : bag_of(terms_in(question))) {
    ++with_term_[term];
    for (const auto& id : cited)
      ++served_[term][id];
  }
  for (const auto& id : cited)
    ++use_[id];
}

std::unordered_map<std::string, double>
recall_feedback::fields(const std::vector<std::string>& different_terms) const {
  std::unordered_map<std::string, double> fields;
  for (const auto& term : different_terms) {
    const auto entries = served_.find(term);
    if (entries == served_.end())
      continue;
    const auto rare =
        idf(static_cast<double>(questions_), static_cast<double>(with_term_.at(term)));
    for (const auto& [id, count] : entries->second) {
      const auto c = static_cast<double>(count);
      fields[id] += rare * (k1 + 1) * c / (c + k1);
    }
  }
  return fields;
}

// -- index ----------------------------------------------------------------------------------------

struct recall_index::impl {
  std::vector<indexed_entry> entries; ///< oldest first, unless `unsorted`
  std::vector<std::uint32_t> terms;   ///< of all entries, as these came
  numbering term_numbers;
  std::vector<std::vector<posting>> postings; ///< by term
  numbering source_numbers;
  std::vector<source_entries> sources;
  numbering author_numbers;
  std::vector<author_entries> authors;
  std::vector<std::uint64_t> length_before{0}; ///< by place: terms in all entries before
  /// Of the entries, by place: what a question looks at in all of them lies close together.
  std::vector<utc_time> entry_times;
  std::vector<std::int64_t> costs;
  std::vector<std::uint32_t> by; ///< authors
  std::vector<std::uint32_t> entry_lengths;
  std::unordered_map<std::string_view, std::uint32_t> places; ///< by id; of equal ids the newest
  bool places_known = false;                                  ///< `places` is up to date
  bool unsorted = false;
  windows around; ///< of the latest question's moment

  void add(const recall_document& d);
  void post(std::size_t place);
  void sort();
  void name_places();
  std::size_t existing(utc_time at) const;
  std::vector<double> text_scores(const std::vector<std::pair<std::string, int>>& bag,
                                  std::size_t n) const;
  std::vector<double> window_scores(const std::vector<std::pair<std::string, int>>& bag,
                                    std::size_t n);
  void lay_windows(std::size_t n);
  void add_windows(const std::vector<posting>& of_term, std::size_t n, int times,
                   std::vector<double>& by_position);
  void add_few_windows(std::span<const posting> of_term, std::size_t n, int times,
                       std::vector<double>& by_position);
  std::optional<std::uint32_t> named_author(const std::string& question, std::size_t n,
                                            std::vector<std::pair<std::string, int>>& bag) const;
  void learn_from(const recall_question& q, const recall_feedback& feedback,
                  std::vector<double>& scores);
};

/// The parts of all entries' scores, by place.
struct all_parts {
  std::vector<double> text;
  std::vector<double> window;
  std::vector<double> date; ///< empty: no date is named
  std::optional<std::uint32_t> author;

  recall_parts at(std::size_t place, std::uint32_t by) const {
    return {text[place], window[place], author == by ? 1.0 : 0.0, date.empty() ? 0.0 : date[place]};
  }
};

void recall_index::impl::add(const recall_document& d) {
  indexed_entry e;
  e.id = d.id;
  e.time = d.time;
  e.day = std::chrono::year_month_day{std::chrono::floor<std::chrono::days>(d.time)};
  e.source = source_numbers.number_of(d.source);
  if (e.source == sources.size())
    sources.emplace_back();
  e.author = author_numbers.number_of(d.author);
  if (e.author == authors.size())
    for (auto& word : words_in((authors.emplace_back(), d.author)))
      if (characters(word) >= shortest_name)
        authors.back().names.push_back(std::move(word));
  e.first_term = terms.size();
  for (std::string_view rest = d.terms; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    terms.push_back(term_numbers.number_of(rest.substr(0, end)));
    if (terms.back() == postings.size())
      postings.emplace_back();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  e.length = static_cast<std::uint32_t>(terms.size() - e.first_term);
  e.cost = d.cost;
  unsorted = unsorted || (!entries.empty() && e.time < entries.back().time);
  entries.push_back(std::move(e));
  places_known = false;
  if (!unsorted)
    post(entries.size() - 1);
}

/// Puts the entry behind all that were posted before it.
void recall_index::impl::post(std::size_t place) {
  auto& e = entries[place];
  const auto at = static_cast<std::uint32_t>(place);
  for (auto i = e.first_term; i < e.first_term + e.length; ++i) {
    auto& of_term = postings[terms[i]];
    if (of_term.empty() || of_term.back().place != at)
      of_term.push_back({at, 0});
    ++of_term.back().count;
  }
  auto& source = sources[e.source];
  e.place_in_source = static_cast<std::uint32_t>(source.places.size());
  source.places.push_back(at);
  source.length_before.push_back(source.length_before.back() + e.length);
  length_before.push_back(length_before.back() + e.length);
  auto& author = authors[e.author];
  author.first_place = std::min(author.first_place, at);
  entry_times.push_back(e.time);
  costs.push_back(e.cost);
  by.push_back(e.author);
  entry_lengths.push_back(e.length);
}

void recall_index::impl::sort() {
  if (!std::exchange(unsorted, false))
    return;
  std::ranges::stable_sort(entries, {}, &indexed_entry::time);
  for (auto& of_term : postings)
    of_term.clear();
  for (auto& s : sources)
    s = {};
  for (auto& a : authors)
    a.first_place = nowhere;
  length_before = {0};
  entry_times.clear();
  costs.clear();
  by.clear();
  entry_lengths.clear();
  around = {};
  for (std::size_t i = 0; i < entries.size(); ++i)
    post(i);
}

void recall_index::impl::name_places() {
  if (std::exchange(places_known, true))
    return;
  places.clear();
  for (std::size_t i = 0; i < entries.size(); ++i)
    places[entries[i].id] = static_cast<std::uint32_t>(i);
}

std::size_t recall_index::impl::existing(utc_time at) const {
  const auto end = std::ranges::upper_bound(entry_times, at);
  return static_cast<std::size_t>(end - entry_times.begin());
}

std::vector<double>
recall_index::impl::text_scores(const std::vector<std::pair<std::string, int>>& bag,
                                std::size_t n) const {
  std::vector<double> out(n, 0.0);
  const auto all = static_cast<double>(n);
  const auto sum = static_cast<double>(length_before[n]);
  const auto average = sum > 0 ? sum / all : 1.0;
  for (const auto& [term, times] : bag) {
    const auto number = term_numbers.find(term);
    if (!number)
      continue;
    const auto& of_term = postings[*number];
    const auto end = std::ranges::lower_bound(of_term, n, {}, &posting::place);
    const auto g = times * idf(all, static_cast<double>(end - of_term.begin())) * (k1 + 1);
    for (auto p = of_term.begin(); p != end; ++p) {
      const double f = p->count;
      out[p->place] += g * f / (f + norm_of(entry_lengths[p->place], average));
    }
  }
  divide_by_maximum(out);
  return out;
}

void recall_index::impl::lay_windows(std::size_t n) {
  auto& w = around;
  if (w.entries == n && w.changes.size() == n + 1)
    return;
  w = {};
  w.entries = n;
  w.place.reserve(n);
  std::vector<double> lengths;
  lengths.reserve(n);
  for (const auto& s : sources) {
    const auto count =
        static_cast<std::size_t>(std::ranges::lower_bound(s.places, n) - s.places.begin());
    w.begin.push_back(static_cast<std::uint32_t>(w.place.size()));
    for (std::size_t k = 0; k < count; ++k) {
      const auto from = k > reach ? k - reach : 0;
      const auto to = std::min(count, k + reach + 1);
      w.place.push_back(s.places[k]);
      lengths.push_back(static_cast<double>(s.length_before[to] - s.length_before[from]));
    }
    w.end.push_back(static_cast<std::uint32_t>(w.place.size()));
  }
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const auto average = sum > 0 ? sum / static_cast<double>(n) : 1.0;
  for (const auto length : lengths)
    w.norm.push_back(norm_of(length, average));
  w.changes.assign(n + 1, 0);
  w.counts.assign(n, 0);
}

/// Of a term that stands in few entries: only the windows that have it are looked at.
void recall_index::impl::add_few_windows(std::span<const posting> of_term, std::size_t n, int times,
                                         std::vector<double>& by_position) {
  auto& w = around;
  std::vector<std::size_t> touched;
  for (const auto& p : of_term) {
    const auto& e = entries[p.place];
    const auto [from, to] = w.reach_of(e.source, e.place_in_source);
    for (auto i = from; i < to; ++i) {
      if (w.counts[i] == 0)
        touched.push_back(i);
      w.counts[i] += static_cast<std::int32_t>(p.count);
    }
  }
  const auto g =
      times * idf(static_cast<double>(n), static_cast<double>(touched.size())) * (k1 + 1);
  for (const auto i : touched) {
    const double f = std::exchange(w.counts[i], 0);
    by_position[i] += g * f / (f + w.norm[i]);
  }
}

void recall_index::impl::add_windows(const std::vector<posting>& of_term, std::size_t n, int times,
                                     std::vector<double>& by_position) {
  auto& w = around;
  const auto end = std::ranges::lower_bound(of_term, n, {}, &posting::place);
  const std::span existing(of_term.begin(), end);
  if (existing.size() * (2 * reach + 1) < n)
    return add_few_windows(existing, n, times, by_position);
  for (const auto& p : existing) {
    const auto& e = entries[p.place];
    const auto [from, to] = w.reach_of(e.source, e.place_in_source);
    w.changes[from] += static_cast<std::int32_t>(p.count);
    w.changes[to] -= static_cast<std::int32_t>(p.count);
  }
  std::int32_t running = 0;
  std::int64_t with_term = 0;
  for (std::size_t i = 0; i < n; ++i) {
    running += std::exchange(w.changes[i], 0);
    w.counts[i] = running;
    with_term += running > 0 ? 1 : 0;
  }
  w.changes[n] = 0;
  const auto g = times * idf(static_cast<double>(n), static_cast<double>(with_term)) * (k1 + 1);
  for (std::size_t i = 0; i < n; ++i)
    if (const double f = std::exchange(w.counts[i], 0); f > 0)
      by_position[i] += g * f / (f + w.norm[i]);
}

std::vector<double>
recall_index::impl::window_scores(const std::vector<std::pair<std::string, int>>& bag,
                                  std::size_t n) {
  lay_windows(n);
  std::vector<double> by_position(n, 0.0);
  for (const auto& [term, times] : bag)
    if (const auto number = term_numbers.find(term))
      add_windows(postings[*number], n, times, by_position);
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[around.place[i]] = by_position[i];
  divide_by_maximum(out);
  return out;
}

/// The author, where exactly one is named; words that name any leave the bag.
std::optional<std::uint32_t>
recall_index::impl::named_author(const std::string& question, std::size_t n,
                                 std::vector<std::pair<std::string, int>>& bag) const {
  std::set<std::uint32_t> named;
  for (const auto& word : words_in(question)) {
    if (characters(word) < shortest_name || is_stop_word(word))
      continue;
    bool names = false;
    for (std::uint32_t a = 0; a < authors.size(); ++a)
      if (authors[a].first_place < n &&
          std::ranges::any_of(authors[a].names,
                              [&](const std::string& name) { return name.starts_with(word); })) {
        named.insert(a);
        names = true;
      }
    if (names)
      std::erase_if(bag, [stem = stem_of(word)](const auto& t) { return t.first == stem; });
  }
  return named.size() == 1 ? std::optional(*named.begin()) : std::nullopt;
}

void recall_index::impl::learn_from(const recall_question& q, const recall_feedback& feedback,
                                    std::vector<double>& scores) {
  using days = std::chrono::duration<double, std::chrono::days::period>;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > 0)
      scores[i] *=
          1 - fresh + fresh * std::exp2(-(days(q.at - entry_times[i]).count() / half_life_days));
  if (feedback.questions() == 0 && feedback.weights().empty())
    return;
  name_places();
  const auto place_of = [&](const std::string& id) {
    const auto it = places.find(id);
    return it == places.end() ? scores.size() : it->second;
  };
  for (const auto& [id, factor] : feedback.weights())
    if (const auto i = place_of(id); i < scores.size())
      scores[i] *= factor;
  for (const auto& [id, use] : feedback.uses())
    if (const auto i = place_of(id); i < scores.size())
      scores[i] *= 1 + use_weight * std::log(1 + static_cast<double>(use));
  std::vector<std::string> different;
  for (auto& [term, times] : bag_of(terms_in(q.text)))
    different.push_back(term);
  std::vector<std::pair<std::size_t, double>> fields;
  double best_field = 0;
  for (const auto& [id, field] : feedback.fields(different))
    if (const auto i = place_of(id); i < scores.size()) {
      fields.emplace_back(i, field);
      best_field = std::max(best_field, field);
    }
  if (fields.empty())
    return;
  const auto best = *std::ranges::max_element(scores);
  for (const auto& [i, field] : fields)
    scores[i] += field_weight * best * (field / best_field);
}

recall_index::recall_index() : impl_(std::make_unique<impl>()) {}
recall_index::~recall_index() = default;
recall_index::recall_index(recall_index&&) noexcept = default;
recall_index& recall_index::operator=(recall_index&&) noexcept = default;

void recall_index::add(const recall_document& document) {
  impl_->add(document);
}

std::size_t recall_index::size() const noexcept {
  return impl_->entries.size();
}

const std::string& recall_index::id(std::size_t place) const {
  return impl_->entries.at(place).id;
}

std::vector<recalled> recall_index::recall(const recall_question& q,
                                           const recall_feedback& feedback) {
  auto& x = *impl_;
  x.sort();
  const auto n = x.existing(q.at);
  auto bag = bag_of(terms_in(q.text));
  all_parts parts;
  parts.author = x.named_author(q.text, n, bag);
  parts.text = x.text_scores(bag, n);
  parts.window = x.window_scores(bag, n);
  if (const auto dates = dates_in(q.text); !dates.empty())
    for (std::size_t i = 0; i < n; ++i)
      parts.date.push_back(date_fit(x.entries[i].time, x.entries[i].day, dates));
  std::vector<double> scores(n);
  for (std::size_t i = 0; i < n; ++i)
    scores[i] = parts.at(i, x.by[i]).core();
  if (!q.core_only)
    x.learn_from(q, feedback, scores);
  const auto better = [&](std::uint32_t l, std::uint32_t r) {
    return scores[l] != scores[r] ? scores[l] > scores[r] : l < r;
  };
  std::vector<std::uint32_t> left(n);
  std::iota(left.begin(), left.end(), 0U);
  std::vector<recalled> taken;
  auto budget = q.budget_tokens;
  for (auto some = sorted_first; !left.empty(); some *= 2) {
    // What does not fit now never will.
    std::erase_if(left, [&](std::uint32_t i) { return x.costs[i] > budget; });
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(some, left.size()));
    std::partial_sort(left.begin(), end, left.end(), better);
    for (auto i = left.begin(); i != end; ++i) {
      if (q.limit != 0 && taken.size() == q.limit)
        return taken;
      if (x.costs[*i] > budget)
        continue;
      budget -= x.costs[*i];
      taken.push_back({*i, scores[*i], parts.at(*i, x.by[*i])});
    }
    left.erase(left.begin(), end);
  }
  return taken;
}

} // namespace boyd::memory
