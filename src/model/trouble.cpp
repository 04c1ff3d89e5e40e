#include "boyd/model/trouble.hpp"

#include "../core/enum_names.hpp"
#include "boyd/core/text.hpp"
#include "error_body.hpp"
#include "http_date.hpp"

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
/// Beyond, a call has failed (SPEC §8).
constexpr milliseconds longest_asked_wait = 120s;
/// A header that asks for more than a day is a slip.
constexpr double longest_header_ms = 86'400'000;

constexpr int http_payment = 402;
constexpr int http_too_large = 413;
constexpr int http_rate_limited = 429;
constexpr int http_unavailable = 503;
constexpr int http_overloaded = 529;

bool says(const std::string& words, std::initializer_list<std::string_view> any) {
  return std::any_of(any.begin(), any.end(),
                     [&](std::string_view w) { return words.find(w) != std::string::npos; });
}

bool says_quota(const std::string& words) {
  return says(words, {"insufficient_quota", "billing_hard_limit", "billing_not_active",
                      "insufficient_credits", "insufficient credits", "insufficient balance",
                      "insufficient_balance", "credit balance is too low", "billing_error",
                      "account is not active", "spending limit", "perday", "out of credits",
                      "exceeded_current_quota", "payment required", "arrearage"});
}

bool says_too_long(const std::string& words) {
  return says(words, {"context_length_exceeded",
                      "exceed_context_size",
                      "request_too_large",
                      "request too large",
                      "prompt is too long",
                      "maximum context length",
                      "context length exceeded",
                      "context window",
                      "context size",
                      "exceeds the maximum number of tokens",
                      "exceed context limit",
                      "reduce the length of the",
                      "input is too long",
                      "input length exceed",
                      "maximum prompt length",
                      "maximum input length",
                      "string_above_max_length",
                      "input token count",
                      "model_context_window_exceeded",
                      "exceeds the model's context",
                      "exceeds the available context",
                      "longer than the model's context",
                      "prompt too long",
                      "too many input tokens"});
}

bool says_refused(const std::string& words) {
  return says(words,
              {"content_filter", "content_policy", "responsibleaipolicy", "data_inspection_failed",
               "datainspectionfailed", "prohibited_content", "input was flagged",
               "blocked due to safety", "safety_violation", "content management policy"});
}

bool says_unauthorized(const std::string& words) {
  return says(words,
              {"invalid_api_key", "api_key_invalid", "authentication_error", "permission_error",
               "api key not valid", "permission_denied", "unauthenticated", "account_deactivated"});
}

bool says_not_found(const std::string& words) {
  return says(words,
              {"model_not_found", "not_found_error", "is not a valid model", "model does not exist",
               "model not exist", "unknown_model", "deploymentnotfound", "no endpoints found"});
}

bool says_overloaded(const std::string& words) {
  return says(words, {"overloaded", "slow_down", "at capacity", "server busy", "server is busy",
                      "capacity_exceeded", "no_capacity", "insufficient_system_resource"});
}

bool says_rate_limited(const std::string& words) {
  return says(words, {"rate_limit", "rate limit", "ratelimit", "resource_exhausted", "throttl",
                      "too many requests", "too_many_requests"});
}

/// By the status alone.
kind kind_of_status(int status) {
  switch (status) {
  case 401:
  case 403:
    return kind::unauthorized;
  case http_payment:
    return kind::quota;
  case 404:
  case 405:
  case 410:
    return kind::not_found;
  case 408:
  case 409:
  case 425:
    return kind::unavailable;
  case http_too_large:
    return kind::too_long;
  case http_rate_limited:
    return kind::rate_limited;
  case http_unavailable:
  case http_overloaded:
    return kind::overloaded;
  default:
    break;
  }
  if (status >= 300 && status < 400)
    return kind::not_found;
  return status >= 400 && status < 500 ? kind::bad_request : kind::unavailable;
}

/// The provider's words come before the status: money first, since such a call must never be
/// repeated, then what the caller can change.
kind kind_of(int status, const std::string& words) {
  if (status == http_payment || says_quota(words))
    return kind::quota;
  // Also with 429: one request that is larger than a minute's tokens never passes.
  if (says_too_long(words))
    return kind::too_long;
  if (says_refused(words))
    return kind::refused;
  if (says_overloaded(words))
    return kind::overloaded;
  if (status == http_rate_limited)
    return kind::rate_limited;
  if (says_unauthorized(words))
    return kind::unauthorized;
  if (says_not_found(words))
    return kind::not_found;
  const bool told = status >= 400 && status < 500 && status != 400;
  if (!told && says_rate_limited(words))
    return kind::rate_limited;
  if (status != 0)
    return kind_of_status(status);
  return says(words, {"invalid_request", "invalid_argument"}) ? kind::bad_request
                                                              : kind::unavailable;
}

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

milliseconds to_wait(double ms) {
  return milliseconds{static_cast<std::int64_t>(std::ceil(std::min(ms, longest_header_ms)))};
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
  if (!out.retry_after)
    out.retry_after = words.retry_after;
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
  if (!text)
    return std::nullopt;
  if (const auto length = positive_number(*text))
    return to_wait(*length * 1000);
  const auto date = parse_http_date(*text);
  if (!date || *date <= now)
    return std::nullopt;
  return to_wait(static_cast<double>((*date - now).count()));
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
