#include "boyd/context/block.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/tokens.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace boyd::context {

namespace {

using memory::estimate_tokens;

/// Shares of a summary: head, outline; the tail has the rest. In tenths.
constexpr std::int64_t head_tenths = 4;
constexpr std::int64_t outline_tenths = 4;
constexpr std::int64_t tenths = 10;
/// A line of a summary is cut behind so many characters.
constexpr std::size_t line_characters = 200;

bool starts_with_any(std::string_view line, auto... words) {
  return (line.starts_with(words) || ...);
}

/// A heading or a declaration: the lines by which a text is found again.
bool is_outline(std::string_view line, semantic about) {
  if (line.empty() || line.front() == ' ' || line.front() == '\t')
    return false;
  switch (about) {
  case semantic::doc:
    return line.front() == '#' || line.front() == '=';
  case semantic::source_code:
    return starts_with_any(line, "class ", "struct ", "enum ", "namespace ", "def ", "fn ", "pub ",
                           "func ", "function ", "export ", "interface ", "type ", "impl ",
                           "template", "async ", "public ", "CREATE ", "create ") ||
           (line.back() == '{' && line.find('(') != line.npos);
  case semantic::config:
    return line.back() == ':' || line.front() == '[';
  default:
    return false;
  }
}

/// Takes lines while they fit; the number of those taken.
template <class Lines>
std::size_t take(const Lines& lines, std::int64_t tokens, std::string& to) {
  std::size_t taken = 0;
  for (const auto line : lines) {
    const auto cut = cut_characters(line, line_characters);
    const auto cost = estimate_tokens(cut) + 1;
    if (cost > tokens)
      break;
    tokens -= cost;
    to.append(cut).append(cut.size() < line.size() ? "…\n" : "\n");
    ++taken;
  }
  return taken;
}

} // namespace

std::string summarize(std::string_view content, semantic about, std::int64_t target_tokens) {
  if (estimate_tokens(content) <= target_tokens)
    return std::string(content);
  auto lines = split(content, '\n');
  if (!lines.empty() && lines.back().empty())
    lines.pop_back();
  std::string text;
  const auto head = take(lines, target_tokens * head_tenths / tenths, text);
  std::vector<std::string_view> outline;
  for (auto i = head; i < lines.size(); ++i)
    if (is_outline(lines[i], about))
      outline.push_back(lines[i]);
  text += "…\n";
  if (!outline.empty()) {
    take(outline, target_tokens * outline_tenths / tenths, text);
    text += "…\n";
  }
  std::string tail;
  auto tokens = target_tokens - estimate_tokens(text);
  for (auto i = lines.size(); i > head; --i) {
    const auto cut = cut_characters(lines[i - 1], line_characters);
    const auto cost = estimate_tokens(cut) + 1;
    if (cost > tokens)
      break;
    tokens -= cost;
    tail.insert(0, std::string(cut) + "\n");
  }
  return text + tail;
}

} // namespace boyd::context
