#include "error_meaning.hpp"

#include "boyd/model/error_words.hpp"

#include <algorithm>
#include <array>

// Codes and words of OpenAI, Azure, Anthropic, Gemini, OpenRouter, DeepSeek, Mistral, Groq, xAI,
// Moonshot, DashScope, Ollama, vLLM, llama.cpp and LM Studio.
namespace boyd::model {
namespace {

using kind = trouble_kind;
using words_t = const std::string&;

constexpr int http_payment = 402;
constexpr int http_too_large = 413;
constexpr int http_rate_limited = 429;
constexpr int http_unavailable = 503;
constexpr int http_overloaded = 529;

/// "perday": quotaId of Gemini; its text is the same for a minute's limit.
constexpr std::array quota_words{
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "insufficient_credits",
    "insufficient credits",
    "insufficient balance",
    "insufficient_balance",
    "billing_error",
    "credit balance is too low",
    "credit_balance_exhausted",
    "account is not active",
    "spending limit",
    "spend_limit_exceeded",
    "spend_limit_reached",
    "usage_limit_exceeded",
    "out of credits",
    "exceeded_current_quota",
    "payment required",
    "arrearage",
    "perday",
};

/// "request too large": one that needs more than a minute's tokens never passes, though it comes
/// with 429 (OpenAI, Groq).
constexpr std::array too_long_words{
    "context_length_exceeded",
    "model_context_window_exceeded",
    "exceed_context_size",
    "request_too_large",
    "string_above_max_length",
    "request too large",
    "prompt is too long",
    "prompt too long",
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeded model token limit",
    "exceeds the length limit",
    "exceeds context length",
    "greater than the context length",
    "exceeds the model's context",
    "longer than the model's context",
    "maximum model length",
    "maximum prompt length",
    "maximum input length",
    "reduce the length of the",
    "input is too long",
    "input length exceed",
    "input token count",
    "too many input tokens",
    "too large for model with",
};

constexpr std::array refused_words{
    "content_filter",      "content_policy",         "content management policy",
    "responsibleaipolicy", "data_inspection_failed", "datainspectionfailed",
    "prohibited_content",  "input was flagged",      "blocked due to safety",
    "safety_violation",
};

constexpr std::array unauthorized_words{
    "invalid_api_key",  "api_key_invalid",   "api key not valid", "authentication_error",
    "permission_error", "permission_denied", "unauthenticated",   "account_deactivated",
};

constexpr std::array not_found_words{
    "model_not_found", "not_found_error",    "is not a valid model", "model does not exist",
    "model not exist", "deploymentnotfound", "unknown_model",        "no endpoints found",
};

constexpr std::array overloaded_words{
    "overloaded",     "slow_down",         "at capacity", "server busy",
    "server is busy", "capacity_exceeded", "no_capacity", "insufficient_system_resource",
};

constexpr std::array rate_words{
    "rate_limit", "rate limit",        "ratelimit",         "resource_exhausted",
    "throttl",    "too many requests", "too_many_requests",
};

constexpr std::array request_words{"invalid_request", "invalid_argument", "badrequest"};

bool says(words_t words, const auto& any) {
  return std::any_of(any.begin(), any.end(),
                     [&](const char* w) { return words.find(w) != std::string::npos; });
}

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

} // namespace

/// The provider's words come before the status: money first, since such a call must never be
/// repeated, then what the caller can change.
trouble_kind kind_of(int status, words_t words) {
  if (status == http_payment || says(words, quota_words))
    return kind::quota;
  if (says(words, too_long_words))
    return kind::too_long;
  if (says(words, refused_words))
    return kind::refused;
  if (says(words, overloaded_words))
    return kind::overloaded;
  if (status == http_rate_limited)
    return kind::rate_limited;
  if (says(words, unauthorized_words))
    return kind::unauthorized;
  if (says(words, not_found_words))
    return kind::not_found;
  const bool told = status > 400 && status < 500;
  if (!told && says(words, rate_words))
    return kind::rate_limited;
  if (status != 0)
    return kind_of_status(status);
  return says(words, request_words) ? kind::bad_request : kind::unavailable;
}

bool says_too_long(std::string_view error) {
  std::string words(error);
  std::ranges::transform(words, words.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return says(words, too_long_words);
}

} // namespace boyd::model
