#include "secret_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace boyd::config {
namespace {

/// What is looked at of a long text.
constexpr std::size_t sample = 128;

/// Ends of names, without '_', '-' and '.'.
constexpr std::array<std::string_view, 16> secret_names{
    "password", "passwd",     "passphrase",  "pwd",          "secret",     "token",
    "apikey",   "accesskey",  "secretkey",   "privatekey",   "signingkey", "accountkey",
    "authkey",  "credential", "credentials", "encryptionkey"};
/// Ends of names of what only tells where to read on.
constexpr std::array<std::string_view, 5> harmless_names{"pagetoken", "nexttoken", "synctoken",
                                                         "continuationtoken", "cursortoken"};

bool ends_like_one(std::string_view name, const auto& ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

bool is_hex(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

/// "\n", "\u001b" and "%20".
bool ends_escape(std::string_view before) {
  const auto n = before.size();
  if (n >= 2 && before[n - 2] == '\\' &&
      std::string_view("nrtbf").find(before[n - 1]) != std::string_view::npos)
    return true;
  if (n >= 3 && before[n - 3] == '%' && is_hex(before[n - 2]) && is_hex(before[n - 1]))
    return true;
  return n >= 6 && before.substr(n - 6, 2) == "\\u" &&
         std::ranges::all_of(before.substr(n - 4), is_hex);
}

/// ECMA-48's "select graphic rendition": ESC [ 1 ; 32 m, also with an escaped ESC.
bool ends_colour(std::string_view before) {
  constexpr std::size_t longest = 12;
  if (!before.ends_with('m'))
    return false;
  before.remove_suffix(1);
  for (std::size_t i = 0; i < longest && !before.empty(); ++i, before.remove_suffix(1))
    if (!is_digit(before.back()) && before.back() != ';')
      return before.back() == '[';
  return false;
}

} // namespace

bool begins_word(std::string_view text, std::size_t at) {
  if (at == 0 || !is_letter_or_digit(text[at - 1]))
    return true;
  const auto before = text.substr(0, at);
  return ends_escape(before) || ends_colour(before);
}

bool looks_random(std::string_view text, least measure) {
  constexpr std::size_t change_every = 5;
  std::size_t length = 0;
  std::size_t digits = 0;
  std::size_t changes = 0;
  char last = 0;
  for (const char c : text.substr(0, sample)) {
    if (!is_letter_or_digit(c))
      continue;
    ++length;
    digits += is_digit(c) ? 1 : 0;
    // "Word" is one word: from upper to lower case is no change.
    if (last != 0 && (is_digit(c) != is_digit(last) || (is_upper(c) && is_lower(last))))
      ++changes;
    last = c;
  }
  const bool whole = measure == least::whole;
  return digits >= (whole ? 2 : 1) && length - digits >= 2 && changes * change_every >= length &&
         is_varied(text, whole ? 8 : 4);
}

bool is_varied(std::string_view text, std::size_t different) {
  std::array<bool, 256> seen{};
  std::size_t found = 0;
  for (const char c : text.substr(0, sample)) {
    auto& known = seen.at(static_cast<std::uint8_t>(c));
    if (!known && ++found == different)
      return true;
    known = true;
  }
  return false;
}

bool names_secret(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (is_letter_or_digit(c))
      plain += lower(c);
  return ends_like_one(plain, secret_names) && !ends_like_one(plain, harmless_names);
}

bool is_uuid(std::string_view text) {
  constexpr std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return text.size() == form.size() && std::ranges::equal(text, form, [](char c, char f) {
           return f == '-' ? c == '-' : is_hex(c);
         });
}

} // namespace boyd::config
