#include "boyd/memory/words.hpp"

#include "unicode.hpp"

#include <algorithm>
#include <array>
#include <utf8proc.h>
#include <utility>

namespace boyd::memory {

namespace {

using detail::append_utf8;
using detail::is_cjk;
using detail::next_code_point;

constexpr char32_t ascii_end = 0x80;
constexpr char32_t right_quote = 0x2019;
/// The longest decomposition in Unicode has 18 code points.
constexpr std::size_t most_parts = 32;
constexpr auto decompose = static_cast<utf8proc_option_t>(UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE);

constexpr auto stop_words = std::to_array<std::string_view>(
    {"a",       "about",   "above",   "after",    "again",      "against", "all",       "also",
     "am",      "an",      "and",     "any",      "are",        "aren",    "as",        "at",
     "be",      "because", "been",    "before",   "being",      "below",   "between",   "both",
     "but",     "by",      "can",     "cannot",   "could",      "couldn",  "d",         "did",
     "didn",    "do",      "does",    "doesn",    "doing",      "don",     "down",      "during",
     "each",    "few",     "for",     "from",     "further",    "had",     "hadn",      "has",
     "hasn",    "have",    "haven",   "having",   "he",         "her",     "here",      "hers",
     "herself", "him",     "himself", "his",      "how",        "i",       "if",        "in",
     "into",    "is",      "isn",     "it",       "its",        "itself",  "just",      "ll",
     "m",       "me",      "might",   "more",     "most",       "must",    "my",        "myself",
     "no",      "nor",     "not",     "now",      "o",          "of",      "off",       "on",
     "once",    "only",    "or",      "other",    "our",        "ours",    "ourselves", "out",
     "over",    "own",     "re",      "s",        "same",       "shall",   "shan",      "she",
     "should",  "shouldn", "so",      "some",     "such",       "t",       "than",      "that",
     "the",     "their",   "theirs",  "them",     "themselves", "then",    "there",     "these",
     "they",    "this",    "those",   "through",  "to",         "too",     "under",     "until",
     "up",      "us",      "ve",      "very",     "was",        "wasn",    "we",        "were",
     "weren",   "what",    "when",    "where",    "which",      "while",   "who",       "whom",
     "whose",   "why",     "will",    "with",     "won",        "would",   "wouldn",    "y",
     "you",     "your",    "yours",   "yourself", "yourselves"});

bool is_word_character(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    return true;
  default:
    return false;
  }
}

/// Collects the words of one text from its folded characters.
class word_collector {
 public:
  explicit word_collector(std::vector<std::string>& out) : out_(out) {}

  void take(char32_t c) {
    const bool ascii_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
    if (ascii_word) {
      end_foreign();
      ascii_ += static_cast<char>(c);
    } else if (c < ascii_end) {
      end();
    } else {
      end_ascii();
      foreign_ += c;
    }
  }

  void end() {
    end_ascii();
    end_foreign();
  }

 private:
  void end_ascii() {
    if (!ascii_.empty())
      out_.push_back(std::exchange(ascii_, {}));
  }

  void end_foreign() {
    if (foreign_.empty())
      return;
    std::u32string cjk;
    std::string others;
    for (const auto c : std::exchange(foreign_, {})) {
      if (!is_word_character(c))
        continue;
      if (is_cjk(c))
        cjk += c;
      else
        append_utf8(others, c);
    }
    if (cjk.size() > 1)
      for (std::size_t i = 0; i + 1 < cjk.size(); ++i) {
        std::string pair;
        append_utf8(pair, cjk[i]);
        append_utf8(pair, cjk[i + 1]);
        out_.push_back(std::move(pair));
      }
    else if (cjk.size() == 1)
      append_utf8(out_.emplace_back(), cjk.front());
    else if (!others.empty())
      out_.push_back(std::move(others));
  }

  std::vector<std::string>& out_;
  std::string ascii_;
  std::u32string foreign_;
};

/// Lower case, then compatibility decomposition without combining marks.
void fold(char32_t c, word_collector& to) {
  c = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  if (c == right_quote)
    return to.take('\'');
  std::array<utf8proc_int32_t, most_parts> parts{};
  int boundary = UTF8PROC_BOUNDCLASS_START;
  const auto n =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()), decompose, &boundary);
  if (n < 0 || n > static_cast<utf8proc_ssize_t>(parts.size()))
    return to.take(c);
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    const auto part = parts[static_cast<std::size_t>(i)];
    if (utf8proc_get_property(part)->combining_class == 0)
      to.take(static_cast<char32_t>(part));
  }
}

} // namespace

std::int64_t count_tokens(std::string_view utf8) noexcept {
  constexpr std::int64_t bytes_per_token = 4;
  std::int64_t cjk = 0;
  std::int64_t bytes = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    const auto before = at;
    if (is_cjk(next_code_point(utf8, at)))
      ++cjk;
    else
      bytes += static_cast<std::int64_t>(at - before);
  }
  return cjk + (bytes + bytes_per_token - 1) / bytes_per_token;
}

std::vector<std::string> words_in(std::string_view utf8) {
  std::vector<std::string> out;
  word_collector words(out);
  for (std::size_t at = 0; at < utf8.size();) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    if (byte >= ascii_end) {
      fold(next_code_point(utf8, at), words);
      continue;
    }
    const bool upper = byte >= 'A' && byte <= 'Z';
    words.take(static_cast<char32_t>(upper ? byte - 'A' + 'a' : byte));
    ++at;
  }
  words.end();
  return out;
}

bool is_stop_word(std::string_view word) noexcept {
  return std::ranges::binary_search(stop_words, word);
}

std::vector<std::string> terms_in(std::string_view utf8) {
  auto words = words_in(utf8);
  std::erase_if(words, [](const std::string& w) { return is_stop_word(w); });
  for (auto& w : words)
    w = stem_of(std::move(w));
  return words;
}

} // namespace boyd::memory
