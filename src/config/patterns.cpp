#include "patterns.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace boyd::config {
namespace {

enum class sign : std::uint8_t { letter, one, run, any };

struct token {
  sign what = sign::letter;
  char letter = 0;

  bool repeats() const { return what == sign::run || what == sign::any; }
};

std::vector<token> tokens_of(std::string_view pattern, pattern_text kind) {
  const auto star = kind == pattern_text::plain ? sign::any : sign::run;
  std::vector<token> out;
  for (const char c : pattern) {
    if (c == '?')
      out.push_back({sign::one, 0});
    else if (c != '*')
      out.push_back({sign::letter, c});
    else if (!out.empty() && out.back().repeats())
      out.back().what = sign::any;
    else
      out.push_back({star, 0});
  }
  return out;
}

/// Whether whatever `special` stands for is something that `general` stands for.
bool takes(const token& general, const token& special, pattern_text kind) {
  if (general.what == sign::any)
    return true;
  if (special.what == sign::any)
    return false;
  const bool stops =
      kind == pattern_text::path && special.what == sign::letter && special.letter == '/';
  if (general.what == sign::run)
    return !stops;
  if (general.what == sign::one) // of a character with several bytes each would be one
    return special.what == sign::one ||
           (special.what == sign::letter && !stops && static_cast<signed char>(special.letter) > 0);
  return special.what == sign::letter && special.letter == general.letter;
}

} // namespace

bool pattern_comparer::covers(std::string_view general, std::string_view special,
                              pattern_text kind) {
  if (general == special)
    return true;
  const auto a = tokens_of(general, kind);
  const auto b = tokens_of(special, kind);
  // The signs of `special` are matched as if they were its text, with the way back to one run.
  std::size_t i = 0;
  std::size_t j = 0;
  std::optional<std::size_t> run;
  std::size_t taken = 0;
  while (j < b.size()) {
    if (steps_ == 0)
      return false;
    --steps_;
    if (i < a.size() && a[i].repeats()) {
      run = i++;
      taken = j;
    } else if (i < a.size() && takes(a[i], b[j], kind)) {
      ++i;
      ++j;
    } else if (run && takes(a[*run], b[taken], kind)) {
      i = *run + 1;
      j = ++taken;
    } else {
      return false;
    }
  }
  while (i < a.size() && a[i].repeats())
    ++i;
  return i == a.size();
}

bool pattern_comparer::may_meet(std::string_view x, std::string_view y) {
  const auto a = tokens_of(x, pattern_text::plain);
  const auto b = tokens_of(y, pattern_text::plain);
  const auto cells = (a.size() + 1) * (b.size() + 1);
  if (steps_ < cells)
    return true;
  steps_ -= cells;
  // meets[j]: whether what is left of `a` from i on and of `b` from j on may be the same text.
  std::vector<bool> below(b.size() + 1);
  for (auto i = a.size() + 1; i-- > 0;) {
    std::vector<bool> meets(b.size() + 1);
    for (auto j = b.size() + 1; j-- > 0;) {
      const bool more_a = i < a.size();
      const bool more_b = j < b.size();
      if (!more_a && !more_b)
        meets[j] = true;
      else if (more_a && a[i].repeats())
        meets[j] = below[j] || (more_b && meets[j + 1]);
      else if (more_b && b[j].repeats())
        meets[j] = meets[j + 1] || (more_a && below[j]);
      else if (more_a && more_b)
        meets[j] =
            (a[i].what == sign::one || b[j].what == sign::one || a[i].letter == b[j].letter) &&
            below[j + 1];
    }
    below = std::move(meets);
  }
  return below.front();
}

} // namespace boyd::config
