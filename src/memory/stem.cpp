#include "boyd/memory/words.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

// Porter's algorithm of 1980, step by step as in the paper; comments name its steps.

namespace boyd::memory {

namespace {

/// y is a consonant at the start and after a vowel.
bool is_consonant(std::string_view w, std::size_t i) {
  switch (w[i]) {
  case 'a':
  case 'e':
  case 'i':
  case 'o':
  case 'u':
    return false;
  case 'y':
    return i == 0 || !is_consonant(w, i - 1);
  default:
    return true;
  }
}

/// m of the paper: how often a consonant follows a vowel.
int measure(std::string_view w) {
  int m = 0;
  for (std::size_t i = 1; i < w.size(); ++i)
    m += is_consonant(w, i) && !is_consonant(w, i - 1) ? 1 : 0;
  return m;
}

bool has_vowel(std::string_view w) {
  for (std::size_t i = 0; i < w.size(); ++i)
    if (!is_consonant(w, i))
      return true;
  return false;
}

/// *o of the paper: ends with consonant, vowel, consonant, the last not w, x or y.
bool ends_short(std::string_view w) {
  const auto n = w.size();
  return n > 2 && is_consonant(w, n - 1) && !is_consonant(w, n - 2) && is_consonant(w, n - 3) &&
         w[n - 1] != 'w' && w[n - 1] != 'x' && w[n - 1] != 'y';
}

struct suffix {
  std::string_view from;
  std::string_view to;
};

constexpr std::array step2{
    suffix{"ational", "ate"}, suffix{"tional", "tion"}, suffix{"enci", "ence"},
    suffix{"anci", "ance"},   suffix{"izer", "ize"},    suffix{"bli", "ble"},
    suffix{"alli", "al"},     suffix{"entli", "ent"},   suffix{"eli", "e"},
    suffix{"ousli", "ous"},   suffix{"ization", "ize"}, suffix{"ation", "ate"},
    suffix{"ator", "ate"},    suffix{"alism", "al"},    suffix{"iveness", "ive"},
    suffix{"fulness", "ful"}, suffix{"ousness", "ous"}, suffix{"aliti", "al"},
    suffix{"iviti", "ive"},   suffix{"biliti", "ble"},  suffix{"logi", "log"}};
constexpr std::array step3{suffix{"icate", "ic"}, suffix{"ative", ""},  suffix{"alize", "al"},
                           suffix{"iciti", "ic"}, suffix{"ical", "ic"}, suffix{"ful", ""},
                           suffix{"ness", ""}};
constexpr std::array step4{
    suffix{"al", ""},    suffix{"ance", ""}, suffix{"ence", ""}, suffix{"er", ""},
    suffix{"ic", ""},    suffix{"able", ""}, suffix{"ible", ""}, suffix{"ant", ""},
    suffix{"ement", ""}, suffix{"ment", ""}, suffix{"ent", ""},  suffix{"ou", ""},
    suffix{"ism", ""},   suffix{"ate", ""},  suffix{"iti", ""},  suffix{"ous", ""},
    suffix{"ive", ""},   suffix{"ize", ""},  suffix{"ion", ""}};

/// The longest suffix of the table decides; it is replaced when what stands before it measures
/// enough.
void replace_suffix(std::string& w, std::span<const suffix> table, int least) {
  const suffix* longest = nullptr;
  for (const auto& s : table)
    if (w.ends_with(s.from) && (longest == nullptr || s.from.size() > longest->from.size()))
      longest = &s;
  if (longest == nullptr)
    return;
  const std::string_view before(w.data(), w.size() - longest->from.size());
  const bool fits = longest->from != "ion" || before.ends_with('s') || before.ends_with('t');
  if (!fits || measure(before) < least)
    return;
  w.resize(before.size());
  w += longest->to;
}

/// Step 1a: plurals.
void cut_plural(std::string& w) {
  if (w.ends_with("sses") || w.ends_with("ies"))
    w.resize(w.size() - 2);
  else if (w.ends_with('s') && !w.ends_with("ss"))
    w.pop_back();
}

/// Step 1b: -ed and -ing.
void cut_participle(std::string& w) {
  constexpr std::size_t eed = 3;
  if (w.ends_with("eed")) {
    if (measure(std::string_view(w).substr(0, w.size() - eed)) > 0)
      w.pop_back();
    return;
  }
  const std::size_t n = w.ends_with("ed") ? 2 : w.ends_with("ing") ? 3 : 0;
  if (n == 0 || !has_vowel(std::string_view(w).substr(0, w.size() - n)))
    return;
  w.resize(w.size() - n);
  const auto size = w.size();
  if (w.ends_with("at") || w.ends_with("bl") || w.ends_with("iz") ||
      (measure(w) == 1 && ends_short(w)))
    w += 'e';
  else if (size > 1 && w[size - 1] == w[size - 2] && is_consonant(w, size - 1) &&
           w[size - 1] != 'l' && w[size - 1] != 's' && w[size - 1] != 'z')
    w.pop_back();
}

/// Step 5.
void tidy_end(std::string& w) {
  if (w.ends_with('e')) {
    const auto before = std::string_view(w).substr(0, w.size() - 1);
    const auto m = measure(before);
    if (m > 1 || (m == 1 && !ends_short(before)))
      w.pop_back();
  }
  if (w.ends_with("ll") && measure(w) > 1)
    w.pop_back();
}

} // namespace

std::string stem_of(std::string w) {
  constexpr std::size_t shortest = 3;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (w.size() < shortest || !std::ranges::all_of(w, is_letter))
    return w;
  cut_plural(w);
  cut_participle(w);
  if (w.ends_with('y') && has_vowel(std::string_view(w).substr(0, w.size() - 1))) // 1c
    w.back() = 'i';
  replace_suffix(w, step2, 1);
  replace_suffix(w, step3, 1);
  replace_suffix(w, step4, 2);
  tidy_end(w);
  return w;
}

} // namespace boyd::memory
