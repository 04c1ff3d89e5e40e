#include "boyd/core/text.hpp"

#include <algorithm>
#include <cstdint>

namespace boyd {
namespace {

constexpr std::string_view white_space = " \t\r\n\v\f";
/// Longer words are no slips of the pen, and the distance costs the product of the lengths.
constexpr std::size_t nearest_word_limit = 128;

struct step {
  std::size_t length = 1;
  bool valid = false;
};

/// The well-formed sequence at the start of `text` (Unicode 15, table 3-7), or one invalid byte.
step step_at(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80)
    return {1, true};
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : low;
    high = lead == 0xED ? 0x9F : high;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : low;
    high = lead == 0xF4 ? 0x8F : high;
  }
  if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high)
    return {};
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF)
      return {};
  return {length, true};
}

/// How many bytes of ASCII, without NUL, `text` begins with. Most text is nothing else.
std::size_t plain_length(std::string_view text) noexcept {
  const auto special = [](char c) { return static_cast<signed char>(c) <= 0; };
  return static_cast<std::size_t>(std::ranges::find_if(text, special) - text.begin());
}

/// Optimal string alignment: insert, delete, substitute, transpose neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

} // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  const auto first = text.empty() ? step{0, false} : step_at(text);
  return first.valid ? first.length : 0;
}

std::size_t count_characters(std::string_view utf8) noexcept {
  std::size_t count = 0;
  while (!utf8.empty()) {
    const auto plain = plain_length(utf8);
    utf8.remove_prefix(plain);
    count += plain;
    if (utf8.empty())
      break;
    utf8.remove_prefix(step_at(utf8).length);
    ++count;
  }
  return count;
}

std::string_view cut_characters(std::string_view utf8, std::size_t characters) noexcept {
  if (utf8.size() <= characters)
    return utf8; // a character is a byte at least
  std::size_t end = 0;
  for (; characters > 0 && end < utf8.size(); --characters)
    end += step_at(utf8.substr(end)).length;
  return utf8.substr(0, end);
}

std::string sanitize_utf8(std::string_view bytes) {
  std::string clean;
  clean.reserve(bytes.size());
  while (true) {
    const auto plain = plain_length(bytes);
    clean.append(bytes.substr(0, plain));
    bytes.remove_prefix(plain);
    if (bytes.empty())
      return clean;
    const step s = step_at(bytes);
    if (s.valid && bytes.front() != '\0')
      clean.append(bytes.substr(0, s.length));
    else
      clean.append(replacement_character);
    bytes.remove_prefix(s.length);
  }
}

std::string_view trim(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(white_space) - begin + 1);
}

bool is_media_type(std::string_view value, std::string_view type) noexcept {
  return std::ranges::equal(trim(value.substr(0, value.find(';'))), type, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

std::string_view first_line(std::string_view text) noexcept {
  text = trim(text);
  return trim(text.substr(0, text.find_first_of("\r\n")));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.empty() || word.size() > nearest_word_limit)
    return {};
  std::size_t best = std::max<std::size_t>(1, word.size() / 3);
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > nearest_word_limit)
      continue;
    const std::size_t d = distance(word, candidate);
    if (d < best || (d == best && found.empty())) {
      best = d;
      found = candidate;
    }
  }
  return found;
}

} // namespace boyd
