#include "boyd/model/limit_text.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/model/error_words.hpp"
#include "error_meaning.hpp"
#include "limit_words.hpp"

#include <algorithm>
#include <array>

namespace boyd::model {
namespace {

constexpr std::size_t searched_bytes = 8u << 10;

/// Limits of use and nothing else.
constexpr std::array<std::string_view, 24> certain{"too many requests",
                                                   "too_many_requests",
                                                   "toomanyrequests",
                                                   "resource_exhausted",
                                                   "resource exhausted",
                                                   "resource has been exhausted",
                                                   "ratelimiterror",
                                                   "rate_limit_error",
                                                   "rate_limit_exceeded",
                                                   "ratelimitexceeded",
                                                   "throttlingexception",
                                                   "request was throttled",
                                                   "exhausted your capacity",
                                                   "out of extra usage",
                                                   "usage_limit_reached",
                                                   "usage limit reached",
                                                   "http 429",
                                                   "status 429",
                                                   "status code 429",
                                                   "status: 429",
                                                   "error code: 429",
                                                   "error 429",
                                                   "error: 429",
                                                   "code\":429"};

/// Words right before "limit" that make it one of use.
constexpr std::array<std::string_view, 16> of_use{
    "rate",    "usage",   "request", "requests", "hour", "hourly", "weekly", "daily",
    "monthly", "session", "opus",    "sonnet",   "your", "api",    "spend",  "quota"};

constexpr std::array<std::string_view, 10> reached{
    "reached", "exceed", "hit ", "exhaust", "retry", "again", "limited", "429", "reset", "used up"};

/// With a time behind them they are limits of use.
constexpr std::array<std::string_view, 9> vague{
    "limit", "quota", "capacity", "overloaded", "busy", "throttl", "too many", "credit", "429"};

/// How a notice begins that stands in the place of an answer.
constexpr std::array<std::string_view, 26> beginnings{"you've hit",
                                                      "you ve hit",
                                                      "you have hit",
                                                      "youve hit",
                                                      "you've reached",
                                                      "you ve reached",
                                                      "you have reached",
                                                      "you've used up",
                                                      "you have exhausted",
                                                      "you're out of",
                                                      "you re out of",
                                                      "you are out of",
                                                      "claude ai usage limit",
                                                      "claude usage limit",
                                                      "usage limit",
                                                      "rate limit",
                                                      "ratelimit",
                                                      "limit reached",
                                                      "weekly limit",
                                                      "session limit",
                                                      "daily limit",
                                                      "opus",
                                                      "too many requests",
                                                      "api error",
                                                      "error:",
                                                      "quota exceeded"};

template <std::size_t Size>
bool says(std::string_view low, const std::array<std::string_view, Size>& any) {
  return std::ranges::any_of(any, [&](auto w) { return low.find(w) != std::string_view::npos; });
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// "usage limit", "5-hour limit", "rate-limit".
bool names_limit_of_use(std::string_view low) {
  constexpr std::string_view word = "limit";
  for (auto at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
    if (low.substr(at).starts_with("limiter"))
      continue;
    auto end = at;
    while (end > 0 && !is_word(low[end - 1]) && at - end < 2)
      --end;
    auto begin = end;
    while (begin > 0 && is_word(low[begin - 1]))
      --begin;
    const auto before = low.substr(begin, end - begin);
    if (std::ranges::find(of_use, before) != of_use.end())
      return true;
  }
  return false;
}

} // namespace

std::string plain_ascii(std::string_view text) {
  if (text.size() > searched_bytes)
    text.remove_prefix(text.size() - searched_bytes);
  std::string out;
  bool foreign = false;
  for (const char c : without_escapes(text)) {
    const bool plain =
        static_cast<unsigned char>(c) < 0x7F && static_cast<unsigned char>(c) >= 0x20;
    if (plain || !foreign)
      out += plain ? c : ' ';
    foreign = !plain;
  }
  return out;
}

std::string lower_ascii(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::optional<told_limit> find_limit(std::string_view text) {
  const auto low = lower_ascii(plain_ascii(text));
  if (says_too_long(low))
    return std::nullopt;
  told_limit out;
  out.until = find_time(text);
  const auto kind = kind_of(0, low);
  const bool credit = kind == trouble_kind::quota;
  const bool quota = low.find("quota") != std::string::npos && says(low, reached);
  const bool sure = says(low, certain);
  if (sure || (names_limit_of_use(low) && says(low, reached)) || credit || quota) {
    const bool pay = credit || (quota && !sure);
    out.kind = pay && !out.until ? told_limit::kind_t::credit : told_limit::kind_t::use;
    return out;
  }
  if (out.until && says(low, vague))
    return out;
  return std::nullopt;
}

bool is_limit_notice(std::string_view answer) {
  constexpr std::size_t longest = 300;
  constexpr std::size_t bare_words = 9;
  answer = trim(answer);
  if (answer.size() > longest || answer.find('\n') != std::string_view::npos)
    return false;
  auto plain = lower_ascii(plain_ascii(answer));
  const auto begin = plain.find_first_not_of(" *_`>#\"[(!");
  if (begin == std::string::npos)
    return false;
  plain.erase(0, begin);
  const bool hours = plain.find_first_not_of("0123456789") == plain.find("-hour limit");
  if (!hours && std::ranges::none_of(beginnings, [&](auto b) { return plain.starts_with(b); }))
    return false;
  const auto limit = find_limit(answer);
  const auto words = std::ranges::count(plain, ' ') + 1;
  return limit && (limit->until || words <= static_cast<std::ptrdiff_t>(bare_words));
}

} // namespace boyd::model
