#include "boyd/memory/tokens.hpp"

#include "unicode.hpp"

#include <algorithm>

namespace boyd::memory {

namespace {

// In hundredths of a token.
constexpr std::int64_t whole = 100;
constexpr std::int64_t word = 100;
constexpr std::int64_t long_letter = 15;
constexpr std::int64_t short_word = 6;
constexpr std::int64_t digits_of_one = 3;
constexpr std::int64_t gap = 70;
constexpr std::int64_t first_sign = 80;
constexpr std::int64_t next_sign = 40;
constexpr std::int64_t rare = 120;

enum class text_kind : unsigned char { small, capital, digit, blank, sign, other };

text_kind kind_of(char c) noexcept {
  constexpr unsigned char ascii_end = 0x80;
  if (static_cast<unsigned char>(c) >= ascii_end)
    return text_kind::other;
  if (c >= 'a' && c <= 'z')
    return text_kind::small;
  if (c >= 'A' && c <= 'Z')
    return text_kind::capital;
  if (c >= '0' && c <= '9')
    return text_kind::digit;
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' ? text_kind::blank : text_kind::sign;
}

bool is_letter(text_kind k) noexcept {
  return k == text_kind::small || k == text_kind::capital;
}

/// The end of the word that begins at `at`.
std::size_t end_of_word(std::string_view text, std::size_t at) noexcept {
  auto before = kind_of(text[at++]);
  for (; at < text.size(); ++at) {
    const auto k = kind_of(text[at]);
    if (!is_letter(k) || (k == text_kind::capital && before == text_kind::small))
      break;
    before = k;
  }
  return at;
}

std::size_t end_of_run(std::string_view text, std::size_t at, text_kind k) noexcept {
  while (at < text.size() && kind_of(text[at]) == k)
    ++at;
  return at;
}

std::int64_t price_of(std::string_view run, text_kind k) noexcept {
  const auto n = static_cast<std::int64_t>(run.size());
  switch (k) {
  case text_kind::small:
  case text_kind::capital:
    return word + std::max<std::int64_t>(0, n - short_word) * long_letter;
  case text_kind::digit:
    return (n + digits_of_one - 1) / digits_of_one * whole;
  case text_kind::blank:
    return n > 1 || run.front() == '\n' ? gap : 0;
  case text_kind::sign:
    return first_sign + (n - 1) * next_sign;
  case text_kind::other:
    break;
  }
  return rare;
}

} // namespace

std::int64_t estimate_tokens(std::string_view text) noexcept {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto k = kind_of(text[at]);
    if (k == text_kind::other) {
      sum += detail::is_cjk(detail::next_code_point(text, at)) ? whole : rare;
      continue;
    }
    const auto end = is_letter(k) ? end_of_word(text, at) : end_of_run(text, at, k);
    sum += price_of(text.substr(at, end - at), k);
    at = end;
  }
  return (sum + whole - 1) / whole;
}

} // namespace boyd::memory
