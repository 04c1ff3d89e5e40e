#include "words.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace boyd::exec {

namespace {

using code_points = std::u32string;
using code_view = std::u32string_view;

constexpr char escape = '\x1b';
constexpr char32_t replacement = 0xFFFD;

/// Valid UTF-8 as code points.
code_points decode(std::string_view bytes) {
  const auto text = sanitize_utf8(bytes);
  code_points out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead >= 0xF0u ? 4 : lead >= 0xE0u ? 3 : lead >= 0xC0u ? 2 : 1;
    auto code = static_cast<char32_t>(length == 1 ? lead : lead & (0xFFu >> (length + 1)));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      code = (code << 6u) | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    out.push_back(code);
    i += length;
  }
  return out;
}

struct code_range {
  char32_t first;
  char32_t last;
};

template <std::size_t Size>
bool is_in(char32_t c, const std::array<code_range, Size>& ranges) {
  return std::ranges::any_of(ranges,
                             [c](const code_range& r) { return c >= r.first && c <= r.last; });
}

/// Blanks of all widths, and characters without a shape: joiners, direction and variation marks.
bool is_blank(char32_t c) {
  static constexpr std::array<code_range, 14> blanks{{{0x00, 0x20},
                                                      {0x7F, 0xA0},
                                                      {0xAD, 0xAD},
                                                      {0x034F, 0x034F},
                                                      {0x061C, 0x061C},
                                                      {0x115F, 0x1160},
                                                      {0x180B, 0x180E},
                                                      {0x2000, 0x200F},
                                                      {0x2028, 0x202F},
                                                      {0x205F, 0x206F},
                                                      {0x3000, 0x3000},
                                                      {0xFE00, 0xFE0F},
                                                      {0xFEFF, 0xFEFF},
                                                      {0xE0000, 0xE0FFF}}};
  return c == 0x2800 || c == 0x3164 || c == 0xFFA0 || is_in(c, blanks);
}

bool is_question_mark(char32_t c) {
  constexpr code_view marks = U"?\u037E\u055E\u061F\u1367\u203D\u2047\u2048\u2049\u2753\u2754\u2E2E"
                              U"\uA60F\uFE16\uFE56\uFF1F";
  return marks.find(c) != code_view::npos;
}

bool is_greek(char32_t c) {
  return (c >= 0x0370 && c <= 0x03FF) || (c >= 0x1F00 && c <= 0x1FFF);
}

/// Quotes, brackets and Markdown that close something, and pictures.
bool may_follow(char32_t c) {
  constexpr code_view closing =
      U"\"'`*_~)]}>|#\\«»‘’‚‛“”„‟‹›〈〉《》「」『』【】〔〕〖〗〞〟﹁﹂﹃﹄"
      U"＂＇）］｝｠｣";
  static constexpr std::array<code_range, 5> pictures{
      {{0x2190, 0x23FF}, {0x2460, 0x27BF}, {0x2B00, 0x2BFF}, {0x20D0, 0x20FF}, {0x1F000, 0x1FAFF}}};
  return is_blank(c) || closing.find(c) != code_view::npos || is_in(c, pictures);
}

bool is_one_of(char32_t c, code_view all) {
  return all.find(c) != code_view::npos;
}

/// The word that ends with `end`, without quotes and Markdown before it.
code_view word_before(code_view text, std::size_t end) {
  auto begin = end;
  while (begin > 0 && !is_blank(text[begin - 1]))
    --begin;
  while (begin < end && may_follow(text[begin]))
    ++begin;
  return text.substr(begin, end - begin);
}

/// Whether the question mark at `at` belongs to code or to an address.
bool is_code(code_view text, std::size_t at) {
  const auto word = word_before(text, at);
  if (word.find(U"://") != code_view::npos || word.starts_with(U"www."))
    return true;
  if (word.starts_with(U".") && text.substr(0, at).find(U"*.") != code_view::npos)
    return true; // a pattern of names
  if (word.ends_with(U"()") || word.find(U'?') != code_view::npos ||
      word.find_first_of(U"*=\\^&|") != code_view::npos)
    return true;
  auto before = at;
  while (before > 0 && is_blank(text[before - 1]))
    --before;
  // A placeholder: `id = ?`, `(?, ?)`.
  if (before > 0 && is_one_of(text[before - 1], U"=(<,+/&|^%"))
    return true;
  // One word between backticks.
  const auto closed = text.find(U'`', at);
  const auto opened = text.rfind(U'`', at);
  return closed != code_view::npos && opened != code_view::npos &&
         std::ranges::none_of(text.substr(opened, at - opened), is_blank);
}

bool ends_with_question(code_view text) {
  auto end = text.size();
  while (end > 0 && !is_question_mark(text[end - 1]) && may_follow(text[end - 1]))
    --end;
  // "?!" and "?..." ask, too.
  auto mark = end;
  while (mark > 0 && is_one_of(text[mark - 1], U"!.…！。"))
    --mark;
  if (mark > 0 && is_question_mark(text[mark - 1])) {
    while (mark > 1 && is_question_mark(text[mark - 2]))
      --mark;
    return text[mark - 1] != U'?' || !is_code(text, mark - 1);
  }
  if (end > 1 && text[end - 1] == U';' && is_greek(text[end - 2]))
    return true;
  // Armenian puts it on a vowel of the word that is asked.
  return word_before(text, end).find(U'\u055E') != code_view::npos;
}

code_points lower(code_view text) {
  code_points out(text);
  for (auto& c : out)
    if (c < 0x80)
      c = static_cast<char32_t>(std::tolower(static_cast<int>(c)));
    else if (c >= 0x0410 && c <= 0x042F)
      c += 0x20;
  return out;
}

constexpr std::array<code_view, 25> words_of_yes{
    U"y",    U"yes", U"j",  U"ja", U"o",     U"oui",    U"s",       U"si",  U"sí",
    U"sì",   U"sim", U"d",  U"da", U"д",     U"да",     U"t",       U"tak", U"ok",
    U"はい", U"是",  U"예", U"네", U"allow", U"accept", U"continue"};
constexpr std::array<code_view, 22> words_of_no{
    U"n",   U"no",   U"nein",   U"nej",  U"non",    U"não",    U"н",      U"нет",
    U"nie", U"ne",   U"いいえ", U"否",   U"不",     U"아니요", U"아니오", U"deny",
    U"q",   U"quit", U"abort",  U"stop", U"cancel", U"reject"};

/// Whether "y/N", "yes|no|all", "[Y]es/[N]o": of the choices one says yes and another no.
bool offers_choice(code_view text) {
  bool yes = false;
  bool no = false;
  code_points word;
  const auto take = [&] {
    const auto known = lower(word);
    yes = yes || std::ranges::find(words_of_yes, code_view(known)) != words_of_yes.end();
    no = no || std::ranges::find(words_of_no, code_view(known)) != words_of_no.end();
    word.clear();
  };
  for (const auto c : text) {
    if (is_one_of(c, U"/|,／、"))
      take();
    else if (!is_one_of(c, U"[](){}（）【】［］") && !is_blank(c))
      word += c;
  }
  take();
  return yes && no;
}

/// A choice at the end: in brackets, or as the last word.
bool ends_with_choice(code_view text) {
  constexpr code_view closing = U")]}）】］";
  auto end = text.size();
  while (end > 0 && (is_one_of(text[end - 1], U":：?？.") ||
                     (may_follow(text[end - 1]) && !is_one_of(text[end - 1], closing))))
    --end;
  if (end == 0)
    return false;
  std::size_t begin = end;
  while (begin > 0 && !is_blank(text[begin - 1]))
    --begin;
  const auto last = text.substr(begin, end - begin);
  if (is_one_of(text[end - 1], closing)) {
    const auto opened = text.substr(0, end).find_last_of(U"([{（【［");
    if (opened != code_view::npos && offers_choice(text.substr(opened, end - opened)))
      return true;
  }
  return last.find_first_of(U"/|／") != code_view::npos && offers_choice(last);
}

constexpr std::array<std::string_view, 20> asking_phrases = {
    "let me know",    "would you like", "shall i",       "should i",      "do you want",
    "please confirm", "please provide", "please choose", "press enter",   "press return",
    "press [enter]",  "press <enter>",  "press any key", "hit enter",     "yes or no",
    "type yes",       "type 'yes'",     "type \"yes\"",  "awaiting your", "waiting for your",
};

} // namespace

bool says_nothing(std::string_view text) {
  // Most texts begin with a word: only the rest is looked into.
  for (const char c : text.substr(0, 64))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 && text.find(escape) == text.npos)
      return false;
  const auto seen = decode(without_escapes(text));
  return std::ranges::all_of(seen, [](char32_t c) { return is_blank(c) || c == replacement; });
}

std::string summary_line(std::string_view text) {
  return sanitize_utf8(cut_characters(first_line(text), limits::summary_characters));
}

bool is_decoration(std::string_view line) {
  const auto all = decode(without_escapes(line));
  return std::ranges::all_of(all, [](char32_t c) {
    return !is_question_mark(c) && (may_follow(c) || is_one_of(c, U"-=+[{(<:.!—–…"));
  });
}

bool asks_reader(std::string_view line) {
  const auto plain = without_escapes(line);
  const auto text = decode(plain);
  if (ends_with_question(text) || ends_with_choice(text))
    return true;
  std::string low(plain);
  for (char& c : low)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(asking_phrases,
                             [&](auto phrase) { return low.find(phrase) != std::string::npos; });
}

} // namespace boyd::exec
