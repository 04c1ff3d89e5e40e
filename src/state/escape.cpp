#include "escape.hpp"

#include "boyd/core/text.hpp"
#include "grammar.hpp"

#include <algorithm>
#include <utility>

namespace boyd::state {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr unsigned char delete_character = 0x7f;
constexpr unsigned char first_printable = 0x20;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < first_printable || byte == delete_character;
}

std::string escape_control(char c) {
  switch (c) {
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  default:
    break;
  }
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', hex_digits[byte >> 4U], hex_digits[byte & 0xfU]};
}

/// Stands as it is in every value, wherever: most of a text is such.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The units (characters or escapes) of an escaped text.
std::size_t unit_length(std::string_view rest) {
  if (rest.front() != '\\') {
    return cut_characters(rest, 1).size();
  }
  constexpr std::size_t hex_escape = 4;
  const std::size_t length = rest.size() > 1 && rest[1] == 'x' ? hex_escape : 2;
  return std::min(length, rest.size());
}

} // namespace

std::string escape_value(std::string_view raw, std::string_view separators,
                         std::size_t max_characters) {
  const std::string text = sanitize_utf8(raw);
  if (text.empty()) {
    return std::string(grammar::none);
  }
  if (text == grammar::none) {
    return "\\" + text;
  }
  std::string escaped;
  escaped.reserve(text.size() + 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_plain(c)) {
      escaped += c;
      continue;
    }
    const bool at_an_end = i == 0 || i + 1 == text.size();
    const bool opens_comment = c == '!' && i > 0 && text.compare(i - 1, 4, "<!--") == 0;
    if (is_control(c)) {
      escaped += escape_control(c);
    } else if (c == ' ' && at_an_end) {
      escaped += "\\s";
    } else if (c == '\\' || c == '|' || opens_comment ||
               separators.find(c) != std::string_view::npos) {
      escaped += '\\';
      escaped += c;
    } else {
      escaped += c;
    }
  }
  return std::string(cut_escaped(escaped, max_characters));
}

std::string unescape_value(std::string_view escaped) {
  if (escaped == grammar::none) {
    return "";
  }
  std::string text;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '\\' || i + 1 == escaped.size()) {
      text += escaped[i];
      continue;
    }
    const char kind = escaped[++i];
    switch (kind) {
    case 'n':
      text += '\n';
      break;
    case 'r':
      text += '\r';
      break;
    case 't':
      text += '\t';
      break;
    case 's':
      text += ' ';
      break;
    case 'x': {
      const auto high =
          i + 2 < escaped.size() ? hex_digits.find(escaped[i + 1]) : std::string::npos;
      const auto low = i + 2 < escaped.size() ? hex_digits.find(escaped[i + 2]) : std::string::npos;
      if (high == std::string_view::npos || low == std::string_view::npos) {
        text += kind;
        break;
      }
      text += static_cast<char>(high * hex_digits.size() + low);
      i += 2;
      break;
    }
    default:
      text += kind;
    }
  }
  return text;
}

std::size_t find_unescaped(std::string_view text, std::string_view needle) {
  for (std::size_t i = 0; i < text.size(); i += unit_length(text.substr(i))) {
    if (text.substr(i).starts_with(needle)) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_unescaped(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto found = find_unescaped(text, separator);
    parts.push_back(text.substr(0, found));
    if (found == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(found + separator.size());
  }
}

std::string_view cut_escaped(std::string_view escaped, std::size_t characters) {
  if (escaped.size() <= characters)
    return escaped; // a character is a byte at least
  std::size_t taken = 0;
  std::size_t count = 0;
  while (taken < escaped.size()) {
    const auto length = unit_length(escaped.substr(taken));
    const auto unit = count_characters(escaped.substr(taken, length));
    if (count + unit > characters) {
      break;
    }
    count += unit;
    taken += length;
  }
  auto cut = escaped.substr(0, taken);
  while (taken < escaped.size() && cut.ends_with(' ')) {
    cut.remove_suffix(1);
  }
  return cut;
}

} // namespace boyd::state
