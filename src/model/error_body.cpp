#include "error_body.hpp"

#include "boyd/core/text.hpp"
#include "json.hpp"

#include <algorithm>
#include <array>
#include <cctype>

// The forms that are known:
//   {"error": {"message", "type", "param", "code"}}        OpenAI and most others
//   {"error": {"code": 429, "message", "status", "details": […]}}, also inside an array   Gemini
//   {"error": {"code": 502, "message", "metadata": {"raw", "provider_name"}}}   OpenRouter
//   {"type": "error", "error": {"type", "message"}}        Anthropic
//   {"error": "text"}                                      Ollama's own pages, TGI, xAI
//   {"object": "error", "message", "type", "code"}         vLLM, Mistral
//   {"detail": "text"} or {"detail": [{"msg", "loc"}]}     FastAPI
// or a page of a proxy.
namespace boyd::model {
namespace {

using nlohmann::json;

constexpr std::size_t line_characters = 500;
constexpr std::string_view cut_mark = "[redacted]";
/// Words of a code, so that a whole sentence in its place is not taken for one.
constexpr std::size_t code_characters = 64;
/// The error is at the beginning; the rest of a large body is not searched.
constexpr std::size_t searched_bytes = 16u << 10;
constexpr int first_http_status = 400;
constexpr int last_http_status = 599;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '*' ||
         c == '.' || c == '+' || c == '=';
}

/// The beginnings of keys of well-known providers, in lower case, and of JSON web tokens.
constexpr std::array<std::string_view, 14> key_beginnings{"sk-",  "sk_",   "pk-",  "aiza",   "gsk_",
                                                          "xai-", "pplx-", "hf_",  "nvapi-", "ghp_",
                                                          "eyj",  "aq.",   "akia", "api_"};
/// Shorter words are no keys ("sk-", "hf_hub").
constexpr std::size_t key_characters = 8;
/// So many letters and digits in a row are taken for a secret (names of models have dashes) unless
/// they name a request, a completion or an organisation.
constexpr std::size_t secret_characters = 24;
constexpr std::array<std::string_view, 4> harmless_beginnings{"req", "chatcmpl", "org-", "proj_"};

bool begins_with_one(std::string_view word, const auto& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view b) { return word.substr(0, b.size()) == b; });
}

/// A long run of both letters and digits.
bool has_secret_run(std::string_view word) {
  std::size_t length = 0;
  bool digits = false;
  bool letters = false;
  for (const char c : word) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    length = digit || letter ? length + 1 : 0;
    digits = length > 0 && (digits || digit);
    letters = length > 0 && (letters || letter);
    if (length >= secret_characters && digits && letters)
      return true;
  }
  return false;
}

/// A key, or a part of one with stars in place of the rest.
bool looks_like_key(std::string_view word) {
  const auto small = lower(word);
  if (word.find("**") != std::string_view::npos)
    return true;
  if (word.size() >= key_characters && begins_with_one(small, key_beginnings))
    return true;
  return !begins_with_one(small, harmless_beginnings) && has_secret_run(word);
}

/// Whether the words before it announce a secret: "provided: ", "Bearer ".
bool announces_key(std::string_view before) {
  const auto end = lower(before.substr(before.size() - std::min<std::size_t>(before.size(), 24)));
  constexpr std::array<std::string_view, 6> words{
      "key provided: ", "bearer ", "api key: ", "api_key=", "api key '", "token: "};
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) {
    return end.size() >= w.size() && end.compare(end.size() - w.size(), w.size(), w) == 0;
  });
}

std::string without_keys(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = 0;
    while (length < text.size() && is_key_character(text[length]))
      ++length;
    if (length == 0) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto word = text.substr(0, length);
    if (looks_like_key(word) || announces_key(out))
      out += cut_mark;
    else
      out += word;
    text.remove_prefix(length);
  }
  return out;
}

/// The title of an HTML page; empty when it has none.
std::string_view title_of(std::string_view page, const std::string& small) {
  const auto begin = small.find("<title>");
  const auto end = small.find("</title>");
  constexpr std::size_t tag = 7;
  if (begin == std::string::npos || end == std::string::npos || end < begin + tag)
    return {};
  return page.substr(begin + tag, end - begin - tag);
}

/// A code in words; a number is one of HTTP.
void take_code(error_words& out, const json& from, const char* key) {
  const auto* value = member(from, key);
  if (!value)
    return;
  if (value->is_number_integer() || value->is_number_unsigned()) {
    const auto number = count_of(from, key).value_or(0);
    if (out.status == 0 && number >= first_http_status && number <= last_http_status)
      out.status = static_cast<int>(number);
    return;
  }
  const auto text = text_of(from, key);
  if (text.empty())
    return;
  out.all += ' ' + lower(text);
  int number = 0;
  if (text.size() == 3 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    number = std::stoi(text);
    if (out.status == 0 && number >= first_http_status && number <= last_http_status)
      out.status = number;
    return;
  }
  if (out.code.empty() && text.size() <= code_characters && text.find(' ') == std::string::npos)
    out.code = clean_line(text);
}

/// google.rpc.RetryInfo and ErrorInfo.
void take_details(error_words& out, const json& error) {
  const auto* details = member(error, "details");
  if (!details || !details->is_array())
    return;
  for (const auto& detail : *details) {
    out.all += ' ' + lower(text_of(detail, "reason"));
    const auto delay = text_of(detail, "retryDelay");
    if (delay.size() > 1 && delay.back() == 's') {
      char* end = nullptr;
      const double length = std::strtod(delay.c_str(), &end);
      constexpr double longest = 86'400;
      if (end == delay.c_str() + delay.size() - 1 && length > 0 && length <= longest)
        out.retry_after = milliseconds{static_cast<std::int64_t>(length * 1000)};
    }
    const auto* violations = member(detail, "violations");
    if (!violations || !violations->is_array())
      continue;
    for (const auto& violation : *violations)
      out.all += ' ' + lower(text_of(violation, "quotaId"));
  }
}

std::string first_detail(const json& detail) {
  if (detail.is_string())
    return detail.get<std::string>();
  if (detail.is_object())
    return text_of(detail, "message");
  if (!detail.is_array() || detail.empty())
    return {};
  std::string out = text_of(detail.front(), "msg");
  if (const auto* place = member(detail.front(), "loc"); place && place->is_array())
    for (const auto& step : *place)
      out += ' ' + (step.is_string() ? step.get<std::string>() : to_text(step));
  return out;
}

void take_object(error_words& out, const json& error) {
  if (error.is_string()) {
    out.message = error.get<std::string>();
    return;
  }
  out.message = text_of(error, "message");
  if (const auto* detail = member(error, "detail"); detail && out.message.empty())
    out.message = first_detail(*detail);
  for (const char* key : {"code", "type", "status"})
    take_code(out, error, key);
  take_details(out, error);
  if (const auto* metadata = member(error, "metadata")) {
    const auto raw = text_of(*metadata, "raw");
    if (!raw.empty())
      out.message += ": " + raw;
    take_code(out, *metadata, "error_type");
  }
  if (const auto* inner = member(error, "innererror"))
    take_code(out, *inner, "code");
}

} // namespace

std::string clean_line(std::string_view text) {
  std::string line = sanitize_utf8(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      c = ' ';
  line.erase(
      std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      line.end());
  line = without_keys(trim(line));
  return std::string(cut_characters(line, line_characters));
}

error_words read_error(std::string_view body) {
  error_words out;
  body = trim(body);
  auto value = parse_json(body);
  if (value && value->is_array() && !value->empty())
    value = json(value->front());
  if (value && (value->is_object() || value->is_string())) {
    const auto* inner = member(*value, "error");
    const bool nested = inner && (inner->is_object() || inner->is_string());
    take_object(out, nested ? *inner : *value);
    if (nested && out.message.empty())
      out.message = text_of(*value, "message");
    if (nested)
      for (const char* key : {"code", "error_type", "status"})
        take_code(out, *value, key);
  } else {
    body = body.substr(0, searched_bytes);
    const auto small = lower(body);
    const bool page = !body.empty() && body.front() == '<';
    out.message = std::string(page ? title_of(body, small) : first_line(body));
  }
  out.all += ' ' + lower(std::string_view(out.message).substr(0, searched_bytes));
  out.message = clean_line(out.message);
  return out;
}

} // namespace boyd::model
