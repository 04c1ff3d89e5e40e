#include "boyd/state/reducer.hpp"

#include "block_scan.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace boyd::state {

namespace {

constexpr std::string_view section_heading = "## recent_actions";
constexpr std::string_view placeholder = "(none yet)";
constexpr std::string_view nothing_said = "(none)";

/// A line of ours and the time it sorts by.
struct timed_line {
  utc_time at{};
  std::string text;
};

std::optional<utc_time> time_of_action(std::string_view line) {
  if (!line.starts_with("- ") || !line.ends_with(')')) {
    return std::nullopt;
  }
  line = line.substr(2, line.size() - 3);
  const auto time_end = line.find(' ');
  const auto id_end = line.find(": ", time_end == std::string_view::npos ? line.size() : time_end);
  const auto status_begin = line.rfind(" (");
  if (id_end == std::string_view::npos || status_begin == std::string_view::npos ||
      status_begin < id_end) {
    return std::nullopt;
  }
  const auto at = parse_rfc3339(line.substr(0, time_end));
  const auto id = line.substr(time_end + 1, id_end - time_end - 1);
  if (!at || !is_valid_name(id) || !dispatch_status_from(line.substr(status_begin + 2))) {
    return std::nullopt;
  }
  return *at;
}

bool is_major_heading(std::string_view line) {
  return line == "#" || line == "##" || line.starts_with("# ") || line.starts_with("## ");
}

/// The section's lines [first, last) of a document, heading not included.
struct section {
  std::size_t heading = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// A document taken apart for the reducer.
class document {
 public:
  explicit document(std::string_view text)
      : text_(text), lines_(split_lines(text)), regions_(find_regions(text, lines_)) {}

  std::string_view text() const { return text_; }
  const std::vector<text_line>& lines() const { return lines_; }

  std::string_view content(std::size_t i) const {
    return without_trailing_blanks(text_.substr(lines_[i].begin, lines_[i].end - lines_[i].begin));
  }

  std::string line_end() const {
    const auto newline = text_.find('\n');
    const bool has_return =
        newline != std::string_view::npos && newline > 0 && text_[newline - 1] == '\r';
    return has_return ? "\r\n" : "\n";
  }

  std::optional<section> find_section() const {
    std::optional<section> found;
    auto next_region = regions_.begin();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      while (next_region != regions_.end() && next_region->end <= lines_[i].begin) {
        ++next_region;
      }
      const bool ours = next_region != regions_.end() && next_region->begin <= lines_[i].begin;
      if (found && (ours || (!lines_[i].fenced && is_major_heading(content(i))))) {
        found->last = i;
        return found;
      }
      if (!found && !ours && !lines_[i].fenced && content(i) == section_heading) {
        found = section{i, i + 1, lines_.size()};
      }
    }
    return found;
  }

  /// Where a new section goes: before the runtime block, or at the end.
  std::size_t place_of_new_section() const {
    for (const auto kind : {region_kind::closed_block, region_kind::half_block}) {
      for (const auto& each : regions_) {
        if (each.kind == kind) {
          return each.begin;
        }
      }
    }
    return text_.size();
  }

 private:
  std::string_view text_;
  std::vector<text_line> lines_;
  std::vector<region> regions_;
};

/// New lines and old ones, newest first, none twice, at most `max`.
std::vector<timed_line> newest_of(const std::vector<action_line>& actions,
                                  std::vector<timed_line> existing, std::size_t max) {
  std::vector<timed_line> all;
  for (const auto& action : actions) {
    std::string text = render_action(action);
    if (const auto at = time_of_action(text)) {
      all.push_back({*at, std::move(text)});
    }
  }
  std::move(existing.begin(), existing.end(), std::back_inserter(all));
  std::stable_sort(all.begin(), all.end(),
                   [](const timed_line& a, const timed_line& b) { return a.at > b.at; });
  std::set<std::string> seen;
  std::erase_if(all, [&](const timed_line& line) { return !seen.insert(line.text).second; });
  all.resize(std::min(all.size(), max));
  return all;
}

std::string joined(const std::vector<timed_line>& lines, const std::string& line_end) {
  std::string text;
  for (const auto& line : lines) {
    text += line.text + line_end;
  }
  return text;
}

std::string with_new_section(const document& file, const std::string& lines) {
  const std::string line_end = file.line_end();
  const auto place = file.place_of_new_section();
  std::string text(file.text().substr(0, place));
  if (!text.empty() && !text.ends_with('\n')) {
    text += line_end;
  }
  if (!text.empty() && !text.ends_with("\n\n") && !text.ends_with("\n\r\n")) {
    text += line_end;
  }
  text += std::string(section_heading) + line_end + lines;
  if (place < file.text().size()) {
    text += line_end;
    text += file.text().substr(place);
  }
  return text;
}

/// The document with `lines` in the place of the section's own lines.
std::string with_lines(const document& file, const section& where, const std::set<std::size_t>& own,
                       const std::string& lines) {
  const std::string line_end = file.line_end();
  const auto place = own.empty() ? where.first : *own.begin();
  std::string text;
  const auto put = [&] {
    if (!text.empty() && !text.ends_with('\n') && !lines.empty()) {
      text += line_end;
    }
    text += lines;
  };
  const auto& all = file.lines();
  text += file.text().substr(0, all.front().begin); // a byte order mark
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == place) {
      put();
    }
    if (!own.contains(i)) {
      text += file.text().substr(all[i].begin, all[i].next - all[i].begin);
    }
  }
  if (place == all.size()) {
    put();
  }
  return text;
}

} // namespace

std::string render_action(const action_line& action) {
  const std::string clean = sanitize_utf8(action.text);
  std::string text(cut_characters(first_line(clean), limits::summary_characters));
  constexpr unsigned char first_printable = 0x20;
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < first_printable; }, ' ');
  return "- " + format_rfc3339(action.at) + " " + action.agent_id + ": " +
         (text.empty() ? std::string(nothing_said) : text) + " (" + action.status + ")";
}

bool is_action_line(std::string_view line) {
  return time_of_action(without_trailing_blanks(line)).has_value();
}

std::string merge_recent_actions(std::string_view file_text,
                                 const std::vector<action_line>& actions, std::size_t max) {
  const document file(file_text);
  const auto where = file.find_section();
  if (!where) {
    const auto lines = newest_of(actions, {}, max);
    return lines.empty() ? std::string(file_text)
                         : with_new_section(file, joined(lines, file.line_end()));
  }
  std::set<std::size_t> own;
  std::vector<timed_line> existing;
  std::set<std::size_t> placeholders;
  for (std::size_t i = where->first; i < where->last; ++i) {
    if (file.lines()[i].fenced) {
      continue;
    }
    if (const auto at = time_of_action(file.content(i))) {
      own.insert(i);
      existing.push_back({*at, std::string(file.content(i))});
    } else if (file.content(i) == placeholder) {
      placeholders.insert(i);
    }
  }
  const auto lines = newest_of(actions, std::move(existing), max);
  if (!lines.empty()) {
    own.merge(placeholders);
  }
  return with_lines(file, *where, own, joined(lines, file.line_end()));
}

} // namespace boyd::state
