#include "ansi.hpp"

#include "boyd/core/outside_json.hpp"

#include <algorithm>

namespace boyd {
namespace {

constexpr char escape = '\x1B';
constexpr char bell = '\a';
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool between(char c, char low, char high) {
  return c >= low && c <= high;
}

/// Parameters and intermediate bytes, then one final byte.
std::size_t control_sequence(std::string_view text) {
  std::size_t at = 2;
  while (at < text.size() && between(text[at], '\x20', '\x3F'))
    ++at;
  return at < text.size() && between(text[at], '\x40', '\x7E') ? at + 1 : at;
}

/// A title, a link and the like: ended by BEL or ESC \, or with its line.
std::size_t control_string(std::string_view text) {
  for (std::size_t at = 2; at < text.size(); ++at) {
    if (text[at] == bell)
      return at + 1;
    if (text[at] == escape)
      return text.substr(at + 1).starts_with('\\') ? at + 2 : at;
    if (text[at] == '\n')
      return at;
  }
  return text.size();
}

} // namespace

std::size_t escape_at(std::string_view text) noexcept {
  if (text.empty() || text.front() != escape)
    return 0;
  if (text.size() == 1)
    return 1;
  const char kind = text[1];
  if (kind == '[')
    return control_sequence(text);
  if (std::string_view("]PX^_").find(kind) != std::string_view::npos)
    return control_string(text);
  if (between(kind, '\x20', '\x2F')) // a set of characters: one more byte
    return std::min<std::size_t>(3, text.size());
  return between(kind, '\x30', '\x7E') ? 2 : 1;
}

std::size_t blank_at(std::string_view text) noexcept {
  if (text.empty())
    return 0;
  if (std::string_view(" \t\r\n\v\f\0", 7).find(text.front()) != std::string_view::npos)
    return 1;
  if (text.starts_with(byte_order_mark))
    return byte_order_mark.size();
  return escape_at(text);
}

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    auto skipped = escape_at(text);
    if (skipped == 0 && text.starts_with(byte_order_mark))
      skipped = byte_order_mark.size();
    if (skipped == 0)
      out += text.front();
    text.remove_prefix(std::max<std::size_t>(skipped, 1));
  }
  return out;
}

} // namespace boyd
