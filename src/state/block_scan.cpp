#include "block_scan.hpp"

#include "boyd/core/cycle.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/time.hpp"
#include "boyd/state/runtime_block.hpp"
#include "grammar.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace boyd::state {

namespace {

constexpr std::size_t fence_minimum = 3;
constexpr std::size_t fence_indent = 3;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// An opening or closing code fence (CommonMark 0.31 §4.5).
struct fence {
  char character = '`';
  std::size_t length = 0;
  bool can_close = false; ///< nothing follows it
};

std::optional<fence> fence_of(std::string_view line) {
  const auto indent = line.find_first_not_of(' ');
  if (indent == std::string_view::npos || indent > fence_indent) {
    return std::nullopt;
  }
  line.remove_prefix(indent);
  const char character = line.front();
  if (character != '`' && character != '~') {
    return std::nullopt;
  }
  const auto run = std::min(line.find_first_not_of(character), line.size());
  const auto info = without_trailing_blanks(line.substr(run));
  if (run < fence_minimum || (character == '`' && info.find('`') != std::string_view::npos)) {
    return std::nullopt;
  }
  return fence{character, run, info.empty()};
}

/// The lines that can close a fence of one character, seen from some line on: each is further away
/// and longer than the one before it.
class closers {
 public:
  /// Going up the file, line `line` is met.
  void meet(std::size_t line, std::size_t length) {
    while (!far_first_.empty() && far_first_.back().length <= length) {
      far_first_.pop_back();
    }
    far_first_.push_back({line, length});
  }

  /// The nearest that closes a fence of this length.
  std::optional<std::size_t> nearest(std::size_t length) const {
    const auto shorter = std::ranges::partition_point(
        far_first_, [&](const entry& e) { return e.length >= length; });
    if (shorter == far_first_.begin()) {
      return std::nullopt;
    }
    return std::prev(shorter)->line;
  }

 private:
  struct entry {
    std::size_t line;
    std::size_t length;
  };
  std::vector<entry> far_first_;
};

/// Where the fence that each line opens is closed; nothing where none is. One pass, so that hostile
/// input costs no more than its size.
std::vector<std::optional<std::size_t>> find_closings(std::string_view text,
                                                      const std::vector<text_line>& lines) {
  std::vector<std::optional<std::size_t>> closings(lines.size());
  std::array<closers, 2> below;
  for (std::size_t i = lines.size(); i-- > 0;) {
    const auto found = fence_of(text.substr(lines[i].begin, lines[i].end - lines[i].begin));
    if (!found) {
      continue;
    }
    auto& same = below[found->character == '`' ? 0 : 1];
    closings[i] = same.nearest(found->length);
    if (found->can_close) {
      same.meet(i, found->length);
    }
  }
  return closings;
}

void mark_fenced(std::string_view text, std::vector<text_line>& lines) {
  const auto closings = find_closings(text, lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!closings[i]) {
      continue;
    }
    for (const auto last = *closings[i]; i < last; ++i) {
      lines[i].fenced = true;
    }
    lines[i].fenced = true;
  }
}

enum class marker : std::uint8_t { none, start, end };

marker marker_of(std::string_view text, const text_line& line) {
  if (line.fenced) {
    return marker::none;
  }
  const auto content = without_trailing_blanks(text.substr(line.begin, line.end - line.begin));
  return content == block_start ? marker::start : content == block_end ? marker::end : marker::none;
}

/// Lines [first, last) as text without trailing blanks.
class line_range {
 public:
  line_range(std::string_view text, const std::vector<text_line>& lines, std::size_t first,
             std::size_t last)
      : text_(text), lines_(&lines), first_(first), last_(last) {}

  std::size_t size() const { return last_ - first_; }
  std::string_view operator[](std::size_t i) const {
    const auto& line = (*lines_)[first_ + i];
    return without_trailing_blanks(text_.substr(line.begin, line.end - line.begin));
  }

 private:
  std::string_view text_;
  const std::vector<text_line>* lines_;
  std::size_t first_;
  std::size_t last_;
};

bool fits_loosely(std::string_view line) {
  return line.empty() || line == grammar::heading || line == grammar::history_heading ||
         line.front() == '|' || grammar::bullet_of(line).has_value();
}

/// Rule 1: whether a pair of markers encloses a block and nothing that it swallowed.
bool encloses_a_block(const line_range& inside) {
  std::size_t first = 0;
  while (first < inside.size() && inside[first].empty()) {
    ++first;
  }
  if (first == inside.size() || inside[first] != grammar::heading) {
    return true;
  }
  for (std::size_t i = first; i < inside.size(); ++i) {
    if (!fits_loosely(inside[i])) {
      return false;
    }
  }
  return true;
}

bool is_history_row(std::string_view line) {
  const auto cells = table_cells(line);
  const auto is_number = [](std::string_view cell) {
    return !cell.empty() && cell.find_first_not_of("-0123456789") == std::string_view::npos;
  };
  return cells.size() == grammar::history_columns && cycle_status_from(cells[1]) &&
         is_number(cells[2]) && is_number(cells[3]) && is_number(cells[4]) &&
         (cells[6] == grammar::none || parse_rfc3339(cells[6]));
}

/// Rule 2: how many lines after an unclosed START are the rendering's.
std::size_t strict_prefix(const line_range& after) {
  std::size_t i = 0;
  if (i == after.size() || after[i] != grammar::heading) {
    return 0;
  }
  ++i;
  while (i < after.size() && grammar::is_known_bullet(after[i])) {
    ++i;
  }
  if (i + 1 >= after.size() || !after[i].empty() || after[i + 1] != grammar::history_heading) {
    return i;
  }
  i += 2;
  if (i == after.size() || after[i] != grammar::history_header) {
    return i;
  }
  ++i;
  if (i == after.size() || after[i] != grammar::history_rule) {
    return i;
  }
  ++i;
  while (i < after.size() && is_history_row(after[i])) {
    ++i;
  }
  return i;
}

} // namespace

std::string_view without_trailing_blanks(std::string_view line) noexcept {
  const auto last = line.find_last_not_of(" \t\r");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::vector<text_line> split_lines(std::string_view text) {
  std::vector<text_line> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    // At the head of any line, not of the file only: what stands before a line may go, and then it
    // is the first.
    while (text.substr(begin).starts_with(byte_order_mark)) {
      begin += byte_order_mark.size();
    }
    const auto found = text.find('\n', begin);
    const auto end = found == std::string_view::npos ? text.size() : found;
    const auto next = found == std::string_view::npos ? text.size() : found + 1;
    lines.push_back({begin, end, next, false});
    begin = next;
  }
  mark_fenced(text, lines);
  return lines;
}

std::vector<region> find_regions(std::string_view text, const std::vector<text_line>& lines) {
  struct mark {
    std::size_t line;
    marker kind;
  };
  std::vector<mark> marks;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (const auto kind = marker_of(text, lines[i]); kind != marker::none) {
      marks.push_back({i, kind});
    }
  }
  std::vector<region> regions;
  for (std::size_t m = 0; m < marks.size(); ++m) {
    const auto first = marks[m].line;
    const auto begin = lines[first].begin;
    if (marks[m].kind == marker::end) {
      regions.push_back({region_kind::stray_end, begin, lines[first].next});
      continue;
    }
    const auto limit = m + 1 < marks.size() ? marks[m + 1].line : lines.size();
    const line_range inside(text, lines, first + 1, limit);
    if (m + 1 < marks.size() && marks[m + 1].kind == marker::end && encloses_a_block(inside)) {
      regions.push_back({region_kind::closed_block, begin, lines[limit].next});
      ++m;
      continue;
    }
    regions.push_back({region_kind::half_block, begin, lines[first + strict_prefix(inside)].next});
  }
  return regions;
}

std::vector<std::string_view> table_cells(std::string_view line) {
  line = trim(line);
  if (line.size() < 2 || line.front() != '|') {
    return {};
  }
  std::vector<std::string_view> cells;
  std::size_t begin = 1;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '|') {
      cells.push_back(trim(line.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return begin == line.size() ? cells : std::vector<std::string_view>{};
}

} // namespace boyd::state
