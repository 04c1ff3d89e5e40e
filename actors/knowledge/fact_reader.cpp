#include "actors/knowledge/fact_reader.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "src/core/json_values.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace boyd {

namespace {

using nlohmann::json;

constexpr const char* position_key = "graph.jsonl";
constexpr std::size_t read_at_once = std::size_t{512} << 10;
/// What items have become is written after so many blocks of the log, or with so many items: what
/// is cut off before is folded again.
constexpr std::uint64_t blocks_of_save = 32;
constexpr std::size_t items_of_save = 30'000;

std::uint64_t number_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

/// How much more an entry of memory counts than one without a history (docs/context.md).
double weight_of(const std::string& id, context::item_statistics s,
                 const context::confidence_rule& rule) {
  constexpr double base = 0.85;
  constexpr double share = 0.3;
  const auto now = s.last_used.value_or(s.created); // the same whenever it is asked
  s.confidence = context::confidence_of(s, id, rule);
  auto fresh = s;
  fresh.success_count = fresh.failure_count = 0;
  fresh.confidence = context::first_confidence(context::item_type::generated, false);
  return (base + share * context::importance(s, now)) /
         (base + share * context::importance(fresh, now));
}

} // namespace

fact_reader::fact_reader(node_context_ptr context)
    : context_(std::move(context)),
      files_(*context_->ports.files, context_->home, context_->ports.unpack) {}

result<void> fact_reader::find_position(knowledge_index& index) {
  auto text = index.value(index_area::position, position_key);
  if (!text)
    return fail(std::move(text.error()));
  at_ = {};
  const auto known = *text ? json::parse(**text, nullptr, false) : json();
  if (known.is_object())
    at_ = {static_cast<std::uint32_t>(number_in(known, "segment")),
           number_in(known, "bytes"),
           number_in(known, "lines"),
           number_in(known, "skipped"),
           number_in(known, "sequence"),
           number_in(known, "last_size"),
           text_in(known, "last_hash"),
           number_in(known, "missing"),
           number_in(known, "skipped_since"),
           number_in(known, "first_sealed")};
  return {};
}

result<void> fact_reader::load(knowledge_index& index) {
  if (auto found = find_position(index); !found)
    return found;
  // An index of a version that believed lines without a number wherever they stood.
  if (at_.sequence > 0 && at_.first_sealed == 0)
    return begin_anew(index);
  seen_.reset();
  feedback_ = {};
  tried_.clear();
  newest_question_ = {};
  auto fresh = index.fresh_links();
  if (!fresh)
    return fail(std::move(fresh.error()));
  links_.resume(std::move(*fresh), at_.lines);
  if (watcher_.begin)
    watcher_.begin();
  learner_ = std::make_unique<graph::learner>(
      graph::learning_rules{},
      [this](index_area area, const std::string& key) { return index_->value(area, key); });
  if (at_.lines == 0)
    return {};
  if (auto items = index.each(index_area::items,
                              [&](std::string_view key, std::string_view value) {
                                if (const auto item = graph::read_learned_item(value))
                                  weigh(key, *item);
                              });
      !items)
    return items;
  if (auto runs = index.each(index_area::open_runs,
                             [this](std::string_view key, std::string_view value) {
                               learner_->resume_run(key, value);
                             });
      !runs)
    return runs;
  return index.each(index_area::questions, [this](std::string_view, std::string_view value) {
    if (const auto q = graph::read_learned_question(value))
      learn(*q);
  });
}

void fact_reader::learn(const graph::learned_question& question) {
  feedback_.learn(question.text, question.items);
  newest_question_ = std::max(newest_question_, question.at);
}

const memory::recall_feedback& earlier_feedback::at(utc_time then) {
  for (; folded_ < questions_.size() && questions_[folded_].at <= then; ++folded_)
    feedback_.learn(questions_[folded_].text, questions_[folded_].items);
  return feedback_;
}

result<std::vector<graph::learned_question>> fact_reader::questions_until(knowledge_index& index,
                                                                          utc_time last) {
  std::vector<graph::learned_question> questions;
  auto read = index.each(index_area::questions, [&](std::string_view, std::string_view value) {
    if (auto q = graph::read_learned_question(value); q && q->at <= last)
      questions.push_back(std::move(*q));
  });
  if (!read)
    return fail(std::move(read.error()));
  std::ranges::stable_sort(questions, {}, &graph::learned_question::at);
  return questions;
}

/// Of an entry of memory that runs have used.
void fact_reader::weigh(std::string_view id, const graph::learned_item& item) {
  if (watcher_.item)
    watcher_.item(id, item);
  if (item.type != context::item_type::generated ||
      item.counts.success_count + item.counts.failure_count == 0)
    return;
  const std::string key(id);
  tried_[key] = item.counts;
  feedback_.weigh(key, weight_of(key, item.counts, weighed_by_));
}

void fact_reader::weigh_by(context::confidence_rule rule) {
  if (rule.method != context::learning_method::bandit)
    rule.seed = 0; // nothing is drawn
  if (rule == weighed_by_)
    return;
  weighed_by_ = rule;
  for (const auto& [id, counts] : tried_)
    feedback_.weigh(id, weight_of(id, counts, rule));
}

result<void> fact_reader::begin_anew(knowledge_index& index) {
  if (auto gone = index.forget_log(); !gone)
    return gone;
  return load(index);
}

result<std::vector<graph::segment>> fact_reader::own_segments() {
  own_ = context_->written->end();
  auto segments = files_.list();
  if (segments && !own_.ends.empty())
    std::erase_if(*segments,
                  [&](const graph::segment& s) { return s.number > own_.ends.rbegin()->first; });
  return segments;
}

std::uint64_t fact_reader::own_end(std::uint32_t segment) const {
  const auto known = own_.ends.find(segment);
  return known == own_.ends.end() ? std::numeric_limits<std::uint64_t>::max() : known->second;
}

result<bool> fact_reader::ends_as_written() {
  if (!own_.last)
    return true;
  const auto& last = *own_.last;
  const auto size = static_cast<std::size_t>(last.end - last.begin);
  const auto text = files_.read({own_.ends.rbegin()->first, false}, last.begin, size);
  if (!text && text.error().code != errc::not_found)
    return fail(text.error());
  return text && text->size() == size &&
         sha256_hex(std::string_view(*text).substr(0, size - 1)) == last.hash;
}

result<fact_reader::seen_end>
fact_reader::look_at_end(const std::vector<graph::segment>& segments) {
  if (segments.empty())
    return seen_end{};
  const auto info = context_->ports.files->stat(files_.path(segments.back()));
  if (!info)
    return fail(info.error());
  const auto number = segments.back().number;
  return seen_end{number, std::min(info->size, own_end(number)), info->inode};
}

result<bool> fact_reader::is_same_log(const std::vector<graph::segment>& segments) {
  if (at_.lines == 0)
    return true;
  if (at_.bytes > own_end(at_.segment))
    return false;
  const auto which = std::ranges::find(segments, at_.segment, &graph::segment::number);
  if (which == segments.end() || at_.last_size == 0 || at_.last_size > at_.bytes)
    return false;
  const auto last = files_.read(*which, at_.bytes - at_.last_size, at_.last_size);
  if (!last)
    return fail(last.error());
  return sha256_hex(*last) == at_.last_hash;
}

result<void> fact_reader::catch_up(knowledge_index& index) {
  index_ = &index;
  const auto lost = [this](error why) -> result<void> {
    learner_.reset();
    return fail(std::move(why));
  };
  if (!learner_)
    if (auto loaded = load(index); !loaded)
      return lost(std::move(loaded.error()));
  const auto segments = own_segments();
  const auto end = segments ? look_at_end(*segments) : result<seen_end>(fail(segments.error()));
  if (!end)
    return fail(end.error());
  if (seen_ == *end)
    return {};
  const auto own = ends_as_written();
  if (!own)
    return fail(own.error());
  if (!*own)
    return {};
  const auto same = is_same_log(*segments);
  if (!same)
    return fail(same.error());
  if (!*same) {
    spdlog::info("knowledge: {} is a different log; reading it from the beginning",
                 context_->layout().graph_log());
    if (auto anew = begin_anew(index); !anew)
      return lost(std::move(anew.error()));
  }
  for (const auto& s : *segments)
    if (s.number >= at_.segment)
      if (auto read = read_segment(index, s, s == segments->back()); !read)
        return lost(std::move(read.error()));
  if (auto saved = save(index); !saved)
    return lost(std::move(saved.error()));
  seen_ = *end;
  return {};
}

/// What another than the last segment ends with is a line, too: none will come behind it.
result<void> fact_reader::read_segment(knowledge_index& index, const graph::segment& which,
                                       bool is_last) {
  for (std::uint64_t from = which.number == at_.segment ? at_.bytes : 0;;) {
    const auto own = own_end(which.number);
    if (from >= own)
      return {};
    const auto part = files_.read(
        which, from, static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, own - from)));
    if (!part && part.error().code == errc::corrupt && !is_last) {
      // Without it, for what it said is lost to everybody: boyd kg verify names it.
      spdlog::error("knowledge: {}", to_string(part.error()));
      return {};
    }
    if (!part)
      return fail(part.error());
    if (part->empty())
      return {};
    const auto end = part->rfind('\n');
    if (end == part->npos && part->size() < read_at_once && is_last)
      return {}; // the last line is not whole
    if (which.number != at_.segment)
      at_.segment = which.number, at_.bytes = 0;
    const bool ends_here = part->size() < read_at_once && !is_last;
    const auto size = end == part->npos || ends_here ? part->size() : end + 1;
    if (auto taken = take_lines(index, std::string_view(*part).substr(0, size)); !taken)
      return taken;
    from = at_.bytes;
  }
}

/// Whole lines; or a piece of one that is too long to be a fact, or is the torn end of a segment.
result<void> fact_reader::take_lines(knowledge_index& index, std::string_view lines) {
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const auto size = end == lines.npos ? lines.size() : end + 1;
    const auto whole = lines.substr(0, size);
    links_.begin_line({at_.lines + 1, at_.segment, at_.bytes, at_.bytes == 0});
    if (auto taken = take_line(lines.substr(0, std::min(end, lines.size()))); !taken)
      return taken;
    ++at_.lines;
    at_.bytes += size;
    at_.last_size = size;
    lines.remove_prefix(size);
    const bool is_full = graph::link_collector::is_full(at_.lines);
    // Links go ahead of the rest, but for a block of which the index has some as fresh ones.
    const bool saves =
        is_full && (links_.has_known() || at_.lines / lines_of_block % blocks_of_save == 0 ||
                    learner_->changed_items() >= items_of_save);
    if (is_full)
      links_.end_block();
    if (lines.empty() || saves)
      at_.last_hash = sha256_hex(whole);
    if (is_full)
      if (auto saved = saves ? save(index) : index.change({}, links_.take_changes()); !saved)
        return saved;
  }
  return {};
}

result<void> fact_reader::take_line(std::string_view line) {
  if (line.empty())
    return {};
  const auto read = graph::parse_edge(line);
  const bool repeats = read && read->seq && *read->seq <= at_.sequence;
  if (!read || repeats || at_.is_behind_seal(at_.lines + 1, read->seq.has_value()) ||
      !graph::is_as_written(line, *read)) {
    ++at_.skipped;
    ++at_.skipped_since;
    return {};
  }
  if (read->seq) {
    // A damaged line explains one that is missing.
    const auto gap = *read->seq - at_.sequence - 1;
    at_.missing += gap - std::min(gap, at_.skipped_since);
    at_.skipped_since = 0;
    if (at_.first_sealed == 0)
      at_.first_sealed = at_.lines + 1;
  }
  at_.sequence = read->seq.value_or(at_.sequence);
  links_.take(read->fact, at_.lines + 1);
  return learner_->take(read->fact, at_.lines + 1);
}

result<void> fact_reader::save(knowledge_index& index) {
  const auto position = json{{"segment", at_.segment},
                             {"bytes", at_.bytes},
                             {"lines", at_.lines},
                             {"skipped", at_.skipped},
                             {"sequence", at_.sequence},
                             {"last_size", at_.last_size},
                             {"last_hash", at_.last_hash},
                             {"missing", at_.missing},
                             {"skipped_since", at_.skipped_since},
                             {"first_sealed", at_.first_sealed}}
                            .dump();
  const auto all = [&](const std::function<void(const index_change& c)>& put) {
    learner_->each_change(put);
    put({index_area::position, position_key, position});
  };
  if (auto changed = index.change(all, links_.take_changes()); !changed)
    return changed;
  for (const auto& id : learner_->saved_items())
    if (const auto* item = learner_->at_hand(id))
      weigh(id, *item);
  learner_->let_go();
  for (const auto& q : learner_->take_questions())
    learn(q);
  return {};
}

result<std::map<std::string, context::item_statistics>>
fact_reader::statistics(knowledge_index& index, const std::vector<std::string>& ids) const {
  std::map<std::string, context::item_statistics> all;
  for (const auto& id : ids) {
    auto text = index.value(index_area::items, id);
    if (!text)
      return fail(std::move(text.error()));
    if (const auto item = *text ? graph::read_learned_item(**text) : std::nullopt)
      all[id] = item->counts;
  }
  return all;
}

} // namespace boyd
