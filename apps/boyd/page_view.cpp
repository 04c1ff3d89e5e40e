#include "page_view.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

/// The page without the sections in which there is nothing, which its last line names.
std::string without_empty_sections(std::string_view page) {
  std::string out;
  std::string empty;
  std::string section; // the lines of one, from its heading on
  std::string name;
  std::size_t lines = 0;
  bool is_none = false; // the latest line says so
  const auto end_section = [&] {
    if (!name.empty() && lines == 1 && is_none)
      empty += (empty.empty() ? "" : ", ") + name;
    else
      out += section;
    section.clear();
    name.clear();
    lines = 0;
  };
  for (const auto line : split(page, '\n')) {
    const bool is_heading = line.starts_with("## ");
    const bool is_label = line.starts_with("**") && line.ends_with(":**");
    if (is_heading || is_label) {
      end_section();
      name = is_heading ? line.substr(3) : line.substr(2, line.size() - 5);
    } else if (!trim(line).empty()) {
      ++lines;
      is_none = line.starts_with("- (none)");
    }
    section += std::string(line) + "\n";
  }
  end_section();
  while (out.ends_with("\n\n"))
    out.pop_back();
  return empty.empty() ? out : out + "\nNothing to show under: " + empty + ".\n";
}

/// Paragraphs as one line each; lists, tables, headings and code stay.
std::string joined_paragraphs(std::string_view markdown) {
  const auto is_plain = [](std::string_view line) {
    return !line.empty() && !line.starts_with("```") &&
           std::string_view(" #-|>").find(line.front()) == std::string_view::npos;
  };
  std::string out;
  bool in_code = false;
  bool goes_on = false; // the line before is one of a paragraph
  bool first = true;
  for (const auto line : split(markdown, '\n')) {
    in_code = in_code != line.starts_with("```");
    const bool joins = !in_code && is_plain(line);
    if (!first)
      out += joins && goes_on ? ' ' : '\n';
    out += line;
    goes_on = joins;
    first = false;
  }
  return out;
}

/// The cells of a row `| a | b |`; `\|` is a stroke of a text.
std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '\\' && i + 1 < row.size() && row[i + 1] == '|')
      cells.back() += row[++i];
    else if (row[i] == '|')
      cells.emplace_back();
    else
      cells.back() += row[i];
  }
  for (auto& cell : cells)
    cell = std::string(trim(cell));
  if (cells.size() > 1)
    cells.pop_back(); // behind the last stroke
  return cells;
}

bool is_rule(const std::vector<std::string>& cells) {
  return std::ranges::all_of(cells, [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of("-:") == std::string::npos;
  });
}

/// A row as an item of a list: its key and its text, then what the other columns say of it.
std::string item_of(const std::vector<std::string>& heads, const std::vector<std::string>& row) {
  constexpr std::size_t most_characters_of_a_key = 4;
  std::string item = "- " + (row.empty() ? std::string() : row.front());
  std::size_t next = 1;
  if (row.size() > 1 && count_characters(row.front()) <= most_characters_of_a_key)
    item += " " + row[next++];
  std::string more;
  for (; next < row.size(); ++next)
    if (!row[next].empty())
      more += (more.empty() ? "\n  " : "; ") +
              (next < heads.size() ? heads[next] + ": " : std::string()) + row[next];
  return item + more;
}

std::string tables_as_lists(std::string_view markdown) {
  std::string out;
  std::vector<std::string> heads; // of the table that goes on
  bool in_code = false;
  for (const auto line : split(markdown, '\n')) {
    in_code = in_code != line.starts_with("```");
    if (in_code || !line.starts_with("|")) {
      heads.clear();
      out += std::string(line) + "\n";
      continue;
    }
    auto cells = cells_of(line);
    if (heads.empty())
      heads = std::move(cells);
    else if (!is_rule(cells))
      out += item_of(heads, cells) + "\n";
  }
  if (!out.empty())
    out.pop_back(); // of the text's last line, which split tells of, too
  return out;
}

/// A command or a path in backticks stays on one line, so that it can be copied: while lines are
/// broken its blanks are another character.
constexpr char kept_blank = '\x01';

std::string with_kept_blanks(std::string_view line, std::size_t width) {
  std::string out(line);
  for (auto at = out.find('`'); at != std::string::npos;) {
    const auto end = out.find('`', at + 1);
    if (end == std::string::npos)
      break;
    if (end - at < width)
      std::replace(out.begin() + static_cast<std::ptrdiff_t>(at),
                   out.begin() + static_cast<std::ptrdiff_t>(end), ' ', kept_blank);
    at = out.find('`', end + 1);
  }
  return out;
}

/// `**words**` bold.
std::string painted(std::string_view line, const terminal& t) {
  std::string out;
  for (auto at = line.find("**"); at != std::string_view::npos; at = line.find("**")) {
    const auto end = line.find("**", at + 2);
    if (end == std::string_view::npos)
      break;
    out +=
        std::string(line.substr(0, at)) + t.paint(colour::bold, line.substr(at + 2, end - at - 2));
    line.remove_prefix(end + 2);
  }
  return out + std::string(line);
}

std::string line_on_screen(std::string_view line, const terminal& t) {
  if (const auto words = line.find_first_not_of('#'); line.starts_with("#"))
    return t.paint(colour::bold, trim(line.substr(std::min(words, line.size()))));
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const bool is_item = line.substr(begin).starts_with("- ");
  // Bold words are painted last: their signs count as characters that a line has no room for, so
  // that it may be shorter than the screen, never longer.
  auto lines = wrapped(with_kept_blanks(line, t.width), t.width, begin + (is_item ? 2 : 0));
  std::ranges::replace(lines, kept_blank, ' ');
  return painted(lines, t);
}

} // namespace

std::string page_on_screen(std::string_view markdown, const terminal& t) {
  const auto page = tables_as_lists(joined_paragraphs(without_empty_sections(markdown)));
  std::string out;
  bool in_code = false;
  for (const auto line : split(page, '\n')) {
    const bool is_fence = line.starts_with("```");
    in_code = in_code != is_fence;
    out += (in_code || is_fence ? std::string(line) : line_on_screen(line, t)) + "\n";
  }
  while (out.ends_with("\n\n"))
    out.pop_back();
  return out;
}

} // namespace boyd::app
