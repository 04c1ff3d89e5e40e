#include "actors/knowledge/log_source.hpp"

#include "actors/knowledge/fact_reader.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/links.hpp"

#include <algorithm>
#include <utility>

namespace boyd {

namespace {

/// Most lines are shorter than this.
constexpr std::size_t usual_line_bytes = 512;

/// The line that is so many behind the first one; nothing: it is not whole in there.
std::optional<std::string_view> line_in(std::string_view bytes, std::uint64_t number) {
  for (; number > 0; --number) {
    const auto end = bytes.find('\n');
    if (end == bytes.npos)
      return std::nullopt;
    bytes.remove_prefix(end + 1);
  }
  const auto end = bytes.find('\n');
  return end == bytes.npos ? std::nullopt : std::optional(bytes.substr(0, end));
}

} // namespace

log_source::log_source(knowledge_index& index, graph::segment_files& files,
                       const log_position& position)
    : index_(index), files_(files), position_(position) {}

std::uint64_t log_source::left_out() const {
  return position_.skipped + unread_.size();
}

std::uint64_t log_source::lines() const {
  return position_.lines;
}

result<std::vector<graph::cited_fact>> log_source::facts_of(const std::string& node,
                                                            std::size_t most) {
  const auto lines = index_.lines_of(graph::node_hash(node), position_.lines + 1, most);
  if (!lines)
    return fail(lines.error());
  std::vector<graph::cited_fact> facts;
  for (const auto line : *lines) {
    auto f = fact_at(line);
    if (!f)
      return fail(std::move(f.error()));
    if (*f && graph::is_found_by((*f)->fact, node))
      facts.push_back(std::move(**f));
  }
  return facts;
}

/// The index knows the lines of each node: only those that two of them share are read.
result<std::vector<graph::cited_fact>>
log_source::facts_between(const std::vector<std::string>& nodes, std::size_t most) {
  std::vector<std::uint64_t> all;
  for (const auto& node : nodes) {
    const auto lines = index_.lines_of(graph::node_hash(node), position_.lines + 1, most);
    if (!lines)
      return fail(lines.error());
    all.insert(all.end(), lines->begin(), lines->end());
  }
  std::ranges::sort(all);
  std::vector<graph::cited_fact> facts;
  for (auto line = std::ranges::adjacent_find(all); line != all.end();
       line = std::adjacent_find(std::upper_bound(line, all.end(), *line), all.end())) {
    auto f = fact_at(*line);
    if (!f)
      return fail(std::move(f.error()));
    if (*f)
      facts.push_back(std::move(**f));
  }
  return facts;
}

result<graph::segment> log_source::segment_numbered(std::uint32_t number) {
  if (!segments_) {
    auto all = files_.list();
    if (!all)
      return fail(std::move(all.error()));
    segments_ = std::move(*all);
  }
  const auto it = std::ranges::find(*segments_, number, &graph::segment::number);
  if (it == segments_->end())
    return fail(errc::not_found, "a segment of the log is missing", graph::segment{number}.name(),
                "restore it from a backup");
  return *it;
}

result<std::string> log_source::place_of(std::uint64_t line, std::uint32_t segment) {
  if (!begin_ || begin_->segment != segment) {
    auto begin = index_.segment_of(line);
    if (!begin)
      return fail(std::move(begin.error()));
    begin_ = *begin;
  }
  const auto first = begin_ ? begin_->line : 1;
  return graph::segment{segment}.name() + ":" + std::to_string(line - first + 1);
}

result<std::optional<std::string>> log_source::text_at(std::uint64_t line, const line_mark& mark) {
  if (latest_ && latest_->from == mark)
    if (const auto text = line_in(latest_->bytes, line - mark.line))
      return std::optional(std::string(*text));
  const auto which = segment_numbered(mark.segment);
  if (!which)
    return fail(which.error());
  for (auto wanted = (graph::lines_between_marks + 1) * usual_line_bytes;; wanted *= 4) {
    auto bytes = files_.read(*which, mark.offset, wanted);
    if (!bytes)
      return fail(std::move(bytes.error()));
    const bool is_all = bytes->size() < wanted;
    latest_ = piece{mark, std::move(*bytes)};
    if (const auto text = line_in(latest_->bytes, line - mark.line))
      return std::optional(std::string(*text));
    if (is_all)
      return std::optional<std::string>();
  }
}

result<std::optional<graph::cited_fact>> log_source::fact_at(std::uint64_t line) {
  const auto mark = index_.mark_before(line);
  if (!mark)
    return fail(mark.error());
  if (!*mark)
    return std::optional<graph::cited_fact>();
  const auto text = text_at(line, **mark);
  // Its segment is gone, or cannot be unpacked.
  if (!text && (text.error().code == errc::corrupt || text.error().code == errc::not_found)) {
    unread_.insert(line);
    return std::optional<graph::cited_fact>();
  }
  if (!text)
    return fail(text.error());
  return *text ? fact_in(**text, line, (*mark)->segment) : std::optional<graph::cited_fact>();
}

result<std::optional<graph::cited_fact>>
log_source::fact_in(std::string_view text, std::uint64_t line, std::uint32_t segment) {
  auto read = graph::parse_edge(text);
  if (!read || position_.is_behind_seal(line, read->seq.has_value()) ||
      !graph::is_as_written(text, *read))
    return std::optional<graph::cited_fact>();
  auto place = place_of(line, segment);
  if (!place)
    return fail(std::move(place.error()));
  return std::optional(graph::cited_fact{std::move(read->fact), line, std::move(*place)});
}

result<bool> log_source::take_back(const line_mark& from, std::uint64_t end,
                                   const std::function<bool(const graph::cited_fact&)>& take) {
  const auto last = text_at(end - 1, from); // with it the lines before it are at hand
  if (!last && (last.error().code == errc::corrupt || last.error().code == errc::not_found)) {
    for (auto line = from.line; line < end; ++line)
      unread_.insert(line);
    return true;
  }
  if (!last)
    return fail(last.error());
  std::string_view rest = latest_->bytes;
  std::vector<std::string_view> lines;
  for (auto at = rest.find('\n'); at != rest.npos && lines.size() < end - from.line;
       at = rest.find('\n')) {
    lines.push_back(rest.substr(0, at));
    rest.remove_prefix(at + 1);
  }
  while (!lines.empty()) {
    const auto text = lines.back();
    lines.pop_back();
    const auto f = fact_in(text, from.line + lines.size(), from.segment);
    if (!f)
      return fail(f.error());
    if (*f && !take(**f))
      return false;
  }
  return true;
}

result<void> log_source::backwards(const std::function<bool(const graph::cited_fact&)>& take) {
  for (auto end = position_.lines + 1; end > 1;) {
    const auto mark = index_.mark_before(end - 1);
    if (!mark)
      return fail(mark.error());
    if (!*mark)
      return {};
    const auto goes_on = take_back(**mark, end, take);
    if (!goes_on)
      return fail(goes_on.error());
    if (!*goes_on)
      return {};
    end = (*mark)->line;
  }
  return {};
}

/// The first line of a segment, or of the first one behind it that the index has.
result<std::uint64_t> log_source::first_line_of(std::uint32_t segment) {
  std::uint64_t low = 1;
  for (auto high = position_.lines + 1; low < high;) {
    const auto middle = low + (high - low) / 2;
    const auto begin = index_.segment_of(middle);
    if (!begin)
      return fail(begin.error());
    if (*begin && (*begin)->segment >= segment)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Lines of segments that are gone or cannot be unpacked are left out, and counted.
result<bool>
log_source::forwards(forward& at,
                     const std::function<bool(const graph::edge& fact, std::uint64_t line)>& take) {
  const auto segments = files_.list();
  if (!segments)
    return fail(segments.error());
  for (const auto& s : *segments) {
    if (s.number < at.segment)
      continue;
    if (s.number > position_.segment || at.line >= at.until)
      break;
    if (at.bytes == 0 || s.number > at.segment) {
      const auto first = first_line_of(s.number);
      if (!first)
        return fail(first.error());
      if (s.number > at.segment && *first > at.line + 1)
        at.unread += *first - 1 - at.line;
      at.line = *first - 1;
      at.segment = s.number;
      at.bytes = 0;
    }
    auto goes_on = forwards_in(s, at, take);
    if (!goes_on && goes_on.error().code == errc::corrupt && s.number < segments->back().number) {
      const auto behind = first_line_of(s.number + 1);
      if (!behind)
        return fail(behind.error());
      // Made without it, the index does not know how many they were.
      at.unread += std::max<std::uint64_t>(1, *behind - std::min(*behind, at.line + 1));
    } else if (!goes_on || !*goes_on) {
      return goes_on;
    }
    at.segment = s.number + 1;
    at.bytes = 0;
  }
  return true;
}

result<bool> log_source::forwards_in(
    const graph::segment& which, forward& at,
    const std::function<bool(const graph::edge& fact, std::uint64_t line)>& take) {
  constexpr std::size_t read_at_once = std::size_t{4} << 20;
  std::string rest;
  for (auto from = at.bytes; at.line < at.until;) {
    const auto bytes = files_.read(which, from, read_at_once);
    if (!bytes)
      return fail(bytes.error());
    if (bytes->empty())
      break;
    from += bytes->size();
    rest += *bytes;
    std::string_view left = rest;
    for (auto end = left.find('\n'); end != left.npos && at.line < at.until;
         end = left.find('\n')) {
      const auto text = left.substr(0, end);
      left.remove_prefix(end + 1);
      ++at.line;
      at.bytes += end + 1;
      const auto read = graph::parse_edge(text);
      const bool repeats = read && read->seq && *read->seq <= at.sequence;
      if (!read || repeats || position_.is_behind_seal(at.line, read->seq.has_value()) ||
          !graph::is_as_written(text, *read))
        continue;
      at.sequence = read->seq.value_or(at.sequence);
      if (!take(read->fact, at.line))
        return false;
    }
    rest.erase(0, rest.size() - left.size());
  }
  return true;
}

result<std::optional<graph::learned_item>> log_source::item(const std::string& id) {
  const auto text = index_.value(index_area::items, id);
  if (!text)
    return fail(text.error());
  return *text ? graph::read_learned_item(**text) : std::nullopt;
}

result<std::optional<std::string>> log_source::value(index_area area, const std::string& key) {
  return index_.value(area, key);
}

result<std::vector<std::pair<std::string, std::string>>>
log_source::some(index_area area, const std::string& from, std::size_t most) {
  return index_.some(area, from, most);
}

result<std::uint64_t> log_source::count(index_area area, const std::optional<std::string>& before) {
  return index_.count(area, before);
}

result<std::string> log_source::place(std::uint64_t line) {
  const auto begin = index_.segment_of(line);
  if (!begin)
    return fail(begin.error());
  return *begin ? place_of(line, (*begin)->segment) : std::string();
}

result<void> log_source::each_item(
    const std::function<void(const std::string& id, const graph::learned_item& item)>& f) {
  return index_.each(index_area::items, [&](std::string_view key, std::string_view value) {
    if (const auto item = graph::read_learned_item(value))
      f(std::string(key), *item);
  });
}

} // namespace boyd
