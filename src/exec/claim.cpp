#include "claim.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "json_text.hpp"
#include "words.hpp"

#include <algorithm>
#include <cctype>

namespace boyd::exec {

namespace {

constexpr std::size_t claim_bytes = 1u << 20;
/// Of the places that look like a claim, so many are looked into, the last ones first.
constexpr int claim_places = 8;
constexpr std::size_t lines_behind = 2;
constexpr std::string_view key = "status";

std::string lower(std::string_view text) {
  std::string out(trim(text));
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0)
    ++at;
  return at;
}

/// Straight and typographic quotes, and those that were escaped once too often.
std::size_t quote_length(std::string_view text) {
  for (const std::string_view quote : {"\\\"", "\"", "'", "“", "”", "„", "‘", "’"})
    if (text.starts_with(quote))
      return quote.size();
  return 0;
}

/// Where the object opens that the key at `at` stands in; npos: in none.
std::size_t begin_of_object(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  for (auto i = at; i > 0; --i) {
    if (text[i - 1] == '}')
      ++depth;
    else if (text[i - 1] == '{' && depth-- == 0)
      return i - 1;
  }
  return std::string_view::npos;
}

/// Whether the object is an element of an array or the value of a key.
bool is_inner(std::string_view text, std::size_t begin) {
  const auto before = trim(text.substr(0, begin));
  if (before.ends_with('[') || before.ends_with(','))
    return true;
  return before.ends_with(':') && trim(before.substr(0, before.size() - 1)).ends_with('"');
}

/// Of an object that broke off, indented lines are its own.
bool is_behind_too_much(std::string_view rest, bool broken = false) {
  std::size_t lines = 0;
  for (const auto line : split(rest, '\n')) {
    const bool own = broken && (line.starts_with(' ') || line.starts_with('\t'));
    lines += own || is_decoration(line) ? 0 : 1;
  }
  return lines > lines_behind;
}

/// A place where "status" is a key whose value begins with one of the two words.
struct claim_place {
  std::size_t at = std::string_view::npos;
  std::string word;
};

/// The value of the key at `at`, as a word; empty: it is none of a claim.
std::string word_of_key(std::string_view text, std::size_t at) {
  auto i = at + key.size();
  i += quote_length(text.substr(std::min(i, text.size())));
  i = skip_blanks(text, i);
  if (i >= text.size() || text[i] != ':')
    return {};
  i = skip_blanks(text, i + 1);
  i += quote_length(text.substr(std::min(i, text.size())));
  i = skip_blanks(text, i);
  std::string word;
  while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0)
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i++])));
  // "done-ish", "failed: 3" are other words.
  i = skip_blanks(text, i);
  const bool ends =
      i >= text.size() || text[i] == ',' || text[i] == '}' || quote_length(text.substr(i)) > 0;
  return ends && claim_verdict_from(word).value_or(claim_verdict::none) != claim_verdict::none
             ? word
             : std::string();
}

/// The last place before `end`.
claim_place last_place(std::string_view text, const std::string& low, std::size_t end) {
  while (end > 0) {
    const auto at = low.rfind(key, end - 1);
    if (at == std::string::npos)
      break;
    const bool whole_word =
        at == 0 || (std::isalnum(static_cast<unsigned char>(low[at - 1])) == 0 &&
                    low[at - 1] != '_' && low[at - 1] != '-');
    if (auto word = whole_word ? word_of_key(text, at) : std::string(); !word.empty())
      return {at, std::move(word)};
    end = at;
  }
  return {};
}

/// The number of keys "status" of the object itself, and whether they differ.
bool says_one_thing(std::string_view object, std::string_view word) {
  std::string low(object);
  for (char& c : low)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (auto end = low.size(); end > 0;) {
    const auto place = last_place(object, low, end);
    if (place.at == std::string_view::npos)
      return true;
    if (place.word != word && begin_of_object(object, place.at) == 0)
      return false;
    end = place.at;
  }
  return true;
}

claim unreadable() {
  claim out;
  out.verdict = claim_verdict::failed;
  out.is_unreadable = true;
  return out;
}

claim read_object(std::string_view object, std::string_view word) {
  const auto found = find_object(object);
  if (!found || found->end != object.size() || !says_one_thing(object, word))
    return unreadable();
  const auto& value = found->value;
  claim out;
  const auto text = [&](std::string_view name) {
    for (const auto& [known, one] : value.items())
      if (one.is_string() && lower(known) == name)
        return one.get<std::string>();
    return std::string();
  };
  const auto verdict = claim_verdict_from(lower(text(key)));
  if (!verdict || *verdict == claim_verdict::none)
    return unreadable();
  out.verdict = *verdict;
  out.summary = text("summary");
  if (const auto named = failure_class_from(lower(text("failure_class")));
      named && *named != failure_class::none)
    out.failure = *named;
  return out;
}

} // namespace

claim find_claim(std::string_view output) {
  if (output.find('{') == std::string_view::npos)
    return {};
  output.remove_prefix(output.size() - std::min(output.size(), claim_bytes));
  const auto plain = without_escapes(output);
  const std::string_view text(plain);
  std::string low(plain);
  for (char& c : low)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  auto end = text.size();
  for (int i = 0; i < claim_places; ++i) {
    const auto place = last_place(text, low, end);
    if (place.at == std::string_view::npos)
      return {};
    end = place.at;
    const auto begin = begin_of_object(text, place.at);
    if (begin == std::string_view::npos || is_inner(text, begin))
      continue;
    const auto closed = end_of_object(text, begin);
    if (closed == std::string_view::npos) {
      // It broke off, or its quotes do not fit: its own line, and those of its indented keys.
      const auto line = std::min(text.find('\n', place.at), text.size());
      if (!is_behind_too_much(text.substr(line), true))
        return unreadable();
      continue;
    }
    if (closed <= place.at || is_behind_too_much(text.substr(closed)))
      continue;
    return read_object(text.substr(begin, closed - begin), place.word);
  }
  return {};
}

} // namespace boyd::exec
