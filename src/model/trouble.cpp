#include "boyd/model/trouble.hpp"

#include "../core/enum_names.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/model/limit_text.hpp"
#include "error_body.hpp"
#include "error_meaning.hpp"
#include "http_date.hpp"
#include "limit_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace boyd::model {
namespace {

using kind = trouble_kind;

constexpr std::array<std::string_view, 11> kind_names{
    "unavailable", "overloaded", "rate_limited", "quota",      "unauthorized", "not_found",
    "bad_request", "too_long",   "refused",      "bad_answer", "cancelled"};

// As the official clients of OpenAI wait.
constexpr milliseconds first_wait = 500ms;
constexpr milliseconds longest_wait = 8s;
constexpr int doublings = 4; // 0.5 s · 2⁴ = 8 s
constexpr double jitter = 0.25;
/// Beyond, a call has failed (docs/executors.md).
constexpr milliseconds longest_asked_wait = 120s;
constexpr double longest_header_ms = static_cast<double>(limits::longest_told_wait.count());

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

/// By its name in any case; the first of several.
std::optional<std::string_view> header(const http_headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (lower(key) == name)
      return trim(value);
  return std::nullopt;
}

/// A number above 0, whole or not; nothing for any other text.
std::optional<double> positive_number(std::string_view text) {
  const std::string copy(text);
  if (copy.empty() || copy.find_first_not_of("0123456789.+-eE") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !std::isfinite(value) || value <= 0)
    return std::nullopt;
  return value;
}

/// Of these a text may say when: a quota, too, may be one of a day.
bool may_pass(kind k) {
  return k == kind::unavailable || k == kind::overloaded || k == kind::rate_limited ||
         k == kind::quota;
}

milliseconds to_wait(double ms) {
  return milliseconds{static_cast<std::int64_t>(std::ceil(std::min(ms, longest_header_ms)))};
}

/// What a body says where its fields and headers do not: "Please try again in 20s".
void take_told_time(trouble& out, std::string_view body, std::optional<utc_time> now) {
  const auto told = find_time(body);
  if (out.retry_after || !told)
    return;
  if (told->wait)
    out.retry_after = told->wait;
  else if (told->at && now)
    out.retry_after = wait_until(*told, *now, nullptr);
  // In words, for who knows the time.
  if (told->at && !find_time(out.what))
    out.what = clean_line(out.what + " (resets " + format_rfc3339(*told->at) + ")");
}

/// Seconds, a date of HTTP or of RFC 3339, seconds since 1970, or "20s".
std::optional<milliseconds> wait_of_header(std::string_view text, utc_time now) {
  const auto until = [&](utc_time at) -> std::optional<milliseconds> {
    if (at <= now)
      return std::nullopt;
    return to_wait(static_cast<double>((at - now).count()));
  };
  if (const auto length = positive_number(text))
    return *length < first_epoch || *length > last_epoch
               ? to_wait(*length * 1000)
               : until(from_unix_ms(static_cast<std::int64_t>(*length * 1000)));
  if (const auto date = parse_http_date(text))
    return until(*date);
  if (const auto date = parse_rfc3339(text))
    return until(*date);
  if (const auto length = parse_duration(text); length && *length > 0ms)
    return to_wait(static_cast<double>(length->count()));
  return std::nullopt;
}

std::string headline(int status, const error_words& words) {
  std::string out = status == 0 ? "the provider answered" : "HTTP " + std::to_string(status);
  if (!words.code.empty())
    out += ' ' + words.code;
  if (!words.message.empty())
    out += ": " + words.message;
  return clean_line(out);
}

} // namespace

std::string_view name_of(trouble_kind k) noexcept {
  return detail::name_in(kind_names, k);
}

std::optional<trouble_kind> trouble_kind_from(std::string_view name) noexcept {
  return detail::value_in<trouble_kind>(kind_names, name);
}

trouble trouble_of_transport(const error& e) {
  trouble out;
  out.what = clean_line(to_string(e));
  switch (e.code) {
  case errc::cancelled:
    out.kind = kind::cancelled;
    break;
  case errc::invalid_argument:
    out.kind = kind::bad_request;
    break;
  case errc::refused: // a certificate that does not hold: a person must look at it
    out.kind = kind::unauthorized;
    break;
  case errc::overloaded:
    out.kind = kind::overloaded;
    break;
  case errc::limit_exceeded:
    out.kind = kind::bad_answer;
    out.should_retry = false; // as large again
    break;
  case errc::parse_error:
    out.kind = kind::bad_answer;
    break;
  default:
    out.kind = kind::unavailable;
  }
  return out;
}

trouble trouble_of_answer(const http_head& head, std::string_view body) {
  auto words = read_error(body);
  const auto place = header(head.headers, "location");
  if (head.status >= 300 && head.status < 400 && place)
    words.message = "redirected to " + std::string(*place) + "; set base_url to the right address";
  trouble out;
  out.status = head.status;
  out.kind = kind_of(head.status, words.all);
  out.what = headline(head.status, words);
  out.code = words.code;
  // A date is read against the answer's own clock: no other one is known here, and none is better.
  const auto date = header(head.headers, "date");
  const auto now = date ? parse_http_date(*date) : std::nullopt;
  out.retry_after = retry_after_of(head.headers, now.value_or(utc_time::max()));
  for (const auto* name : {"anthropic-ratelimit-unified-reset", "x-ratelimit-reset-after",
                           "x-ratelimit-reset", "ratelimit-reset"})
    if (const auto reset = header(head.headers, name); reset && head.status == 429)
      out.retry_after =
          out.retry_after ? out.retry_after : wait_of_header(*reset, now.value_or(utc_time::max()));
  if (!out.retry_after)
    out.retry_after = words.retry_after;
  if (may_pass(out.kind))
    take_told_time(out, body, now);
  if (const auto wish = header(head.headers, "x-should-retry"); wish == "true" || wish == "false")
    out.should_retry = *wish == "true";
  return out;
}

trouble trouble_of_object(std::string_view json) {
  const auto words = read_error(json);
  trouble out;
  out.status = words.status;
  out.kind = kind_of(words.status, words.all);
  out.what = headline(words.status, words);
  out.code = words.code;
  out.retry_after = words.retry_after;
  if (may_pass(out.kind))
    take_told_time(out, json, std::nullopt);
  return out;
}

bool may_repeat(const trouble& t) noexcept {
  if (t.kind == kind::quota || t.kind == kind::cancelled)
    return false;
  if (t.should_retry)
    return *t.should_retry;
  return t.kind == kind::unavailable || t.kind == kind::overloaded ||
         t.kind == kind::rate_limited || t.kind == kind::bad_answer;
}

std::optional<milliseconds> wait_before_repeat(const trouble& t, int repeat, double unit) {
  if (t.retry_after && *t.retry_after > longest_asked_wait)
    return std::nullopt;
  if (t.retry_after && t.retry_after->count() > 0)
    return t.retry_after;
  const auto wait = std::min(first_wait * (1 << std::clamp(repeat, 0, doublings)), longest_wait);
  const double less = jitter * std::clamp(unit, 0.0, 1.0);
  return milliseconds{std::llround(static_cast<double>(wait.count()) * (1 - less))};
}

std::optional<milliseconds> retry_after_of(const http_headers& headers, utc_time now) {
  if (const auto text = header(headers, "retry-after-ms"))
    if (const auto ms = positive_number(*text))
      return to_wait(*ms);
  const auto text = header(headers, "retry-after");
  return text ? wait_of_header(*text, now) : std::nullopt;
}

failure_class class_of(trouble_kind k) noexcept {
  switch (k) {
  case kind::unauthorized:
  case kind::not_found:
  case kind::quota:
    return failure_class::environment;
  case kind::bad_request:
  case kind::refused:
    return failure_class::deterministic;
  case kind::unavailable:
  case kind::overloaded:
  case kind::rate_limited:
  case kind::too_long:
  case kind::bad_answer:
  case kind::cancelled:
    break;
  }
  return failure_class::transient;
}

} // namespace boyd::model
