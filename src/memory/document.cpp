#include "boyd/memory/document.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace boyd::memory {

namespace {

constexpr std::size_t most_indent = 3;
constexpr std::size_t most_heading = 6;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_blank(std::string_view line) {
  return trim(line).empty();
}

/// Characters of a list item's bullet with the blank behind it; 0: it is none.
std::size_t bullet_of(std::string_view line) {
  const auto indent = indent_of(line);
  if (indent > most_indent || indent + 1 >= line.size())
    return 0;
  const auto rest = line.substr(indent);
  if (std::string_view("-*+").find(rest[0]) != std::string_view::npos && rest[1] == ' ')
    return indent + 2;
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits > 0 && digits + 1 < rest.size() && (rest[digits] == '.' || rest[digits] == ')') &&
      rest[digits + 1] == ' ')
    return indent + digits + 2;
  return 0;
}

/// 1 to 6; 0: no heading.
std::size_t heading_level(std::string_view line) {
  const auto level = std::min(line.find_first_not_of('#'), line.size());
  return level > 0 && level <= most_heading && level < line.size() && line[level] == ' ' ? level
                                                                                         : 0;
}

std::string heading_text(std::string_view line) {
  auto text = trim(line.substr(std::min(line.find_first_not_of('#'), line.size())));
  while (text.ends_with('#'))
    text.remove_suffix(1);
  return std::string(trim(text));
}

/// The mark of a code fence that a line opens or closes; empty: none.
std::string_view fence_of(std::string_view line) {
  constexpr std::size_t shortest = 3;
  const auto text = trim(line);
  for (const char mark : {'`', '~'}) {
    const auto n = std::min(text.find_first_not_of(mark), text.size());
    if (n >= shortest)
      return text.substr(0, n);
  }
  return {};
}

class splitter {
 public:
  std::vector<piece> split(std::string_view file) {
    for (std::size_t at = 0; at < file.size();) {
      const auto end = std::min(file.find('\n', at), file.size() - 1) + 1;
      take(file.substr(at, end - at));
      at = end;
    }
    flush_blanks();
    return std::move(pieces_);
  }

 private:
  void take(std::string_view line) {
    const auto text = line.ends_with('\n') ? line.substr(0, line.size() - 1) : line;
    if (!fence_.empty()) {
      if (const auto f = fence_of(text); f.starts_with(fence_) && f.size() == trim(text).size())
        fence_.clear();
      return append(line);
    }
    if (is_blank(text)) { // belongs to an entry only when more of it follows
      blanks_ += line;
      return;
    }
    const bool inside = !pieces_.empty() && pieces_.back().entry && indent_of(text) >= 2;
    if (heading_level(text) > 0 && !inside)
      return heading(line, text);
    if (bullet_of(text) > 0 && !inside) {
      flush_blanks();
      pieces_.push_back({std::string(line), true, false, section()});
    } else if (inside || (!pieces_.empty() && pieces_.back().entry && blanks_.empty())) {
      pieces_.back().text += std::exchange(blanks_, {});
      pieces_.back().text += line;
    } else {
      flush_blanks();
      between(line);
    }
    fence_ = fence_of(text);
  }

  void append(std::string_view line) {
    pieces_.back().text += std::exchange(blanks_, {});
    pieces_.back().text += line;
  }

  void between(std::string_view line) {
    if (!pieces_.empty() && !pieces_.back().entry && !pieces_.back().heading)
      pieces_.back().text += line;
    else
      pieces_.push_back({std::string(line), false, false, section()});
  }

  void flush_blanks() {
    if (!blanks_.empty())
      between(std::exchange(blanks_, {}));
  }

  void heading(std::string_view line, std::string_view text) {
    flush_blanks();
    const auto level = heading_level(text);
    while (!headings_.empty() && headings_.back().first >= level)
      headings_.pop_back();
    headings_.emplace_back(level, heading_text(text));
    pieces_.push_back({std::string(line), false, true, section()});
  }

  std::string section() const {
    std::string name;
    for (const auto& [level, text] : headings_)
      if (level > 1)
        name += (name.empty() ? "" : " — ") + text;
    return name;
  }

  std::vector<piece> pieces_;
  std::vector<std::pair<std::size_t, std::string>> headings_;
  std::string blanks_;
  std::string fence_;
};

} // namespace

std::vector<piece> split_memory(std::string_view file) {
  return splitter().split(file);
}

std::string join_memory(const std::vector<piece>& pieces) {
  std::string file;
  for (const auto& p : pieces)
    file += p.text;
  return file;
}

std::string words_of_entry(std::string_view entry) {
  const auto first = entry.substr(0, entry.find('\n'));
  auto text = entry.substr(bullet_of(first));
  while (text.ends_with('\n') || text.ends_with('\r'))
    text.remove_suffix(1);
  return std::string(text);
}

bool grows_at_top(const std::vector<std::string_view>& entries) {
  std::vector<std::string> dates;
  for (const auto& entry : entries)
    if (auto date = date_of_entry(entry))
      dates.push_back(std::move(*date));
  return dates.size() > 1 && dates.front() > dates.back();
}

std::vector<std::size_t> places_by_age(const std::vector<std::string_view>& entries) {
  std::vector<std::size_t> places(entries.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (grows_at_top(entries))
    std::ranges::reverse(places);
  std::vector<std::string> dates;
  for (const auto& entry : entries)
    if (auto date = date_of_entry(entry))
      dates.push_back(std::move(*date));
  if (dates.size() == entries.size())
    std::ranges::stable_sort(places, {}, [&](std::size_t i) { return dates[i]; });
  return places;
}

std::optional<remembered_line> read_remembered(std::string_view line) {
  line = trim(line);
  const auto end = line.find(']');
  if (!line.starts_with('[') || end == std::string_view::npos)
    return std::nullopt;
  const auto section = trim(line.substr(1, end - 1));
  const auto text = trim(line.substr(end + 1));
  if (section.empty() || text.empty())
    return std::nullopt;
  return remembered_line{std::string(section), std::string(text)};
}

std::optional<std::string> date_of_entry(std::string_view entry) {
  constexpr std::string_view form = "dddd-dd-dd";
  const auto words = words_of_entry(entry);
  const auto begin = words.find_first_not_of("[(*_` ");
  if (begin == std::string::npos || words.size() < begin + form.size())
    return std::nullopt;
  const auto date = words.substr(begin, form.size());
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? !is_digit(date[i]) : date[i] != form[i])
      return std::nullopt;
  return date;
}

} // namespace boyd::memory
