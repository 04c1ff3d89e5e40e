#include "boyd/model/chat.hpp"
#include "json.hpp"
#include "strict_schema.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace boyd::model {
namespace {

using nlohmann::json;

message_json message_of(const char* role, std::string_view text) {
  const auto quoted = to_text(json(text));
  constexpr std::size_t other_signs = 48;
  message_json out;
  // Messages are held as long as the answer takes: without a growing string's spare room.
  out.reserve(quoted.size() + other_signs);
  out += R"({"role":")";
  out += role;
  out += R"(","content":)";
  out += quoted;
  out += '}';
  return out;
}

std::string words_for(const std::string& schema) {
  return "Answer with one JSON value that follows this JSON Schema, and with nothing else: no "
         "explanation, no code fence.\n" +
         schema;
}

/// The messages with `words` at the end of the first one, when that is the system's, else before
/// all.
std::vector<message_json> with_words(std::vector<message_json> messages, const std::string& words) {
  if (!messages.empty()) {
    const auto first = parse_json(messages.front());
    if (first && text_of(*first, "role") == "system" && first->contains("content") &&
        first->at("content").is_string()) {
      messages.front() = system_message(text_of(*first, "content") + "\n\n" + words);
      return messages;
    }
  }
  messages.insert(messages.begin(), system_message(words));
  return messages;
}

/// OpenAI's newer models refuse max_tokens; Mistral, llama.cpp, Ollama and others know nothing
/// else.
bool wants_completion_tokens(const config::provider& p) {
  return p.preset == "openai" || p.base_url.find("//api.openai.com") != std::string::npos ||
         p.base_url.find(".openai.azure.com") != std::string::npos;
}

/// Names of headers have no case (RFC 9110 §5.1).
bool same_name(const std::pair<std::string, std::string>& a,
               const std::pair<std::string, std::string>& b) {
  return std::equal(
      a.first.begin(), a.first.end(), b.first.begin(), b.first.end(),
      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// Names of schemas have letters, digits, dashes and underscores, at most 64.
std::string schema_name(const std::string& name) {
  constexpr std::size_t longest = 64;
  std::string out = name.substr(0, longest);
  for (char& c : out)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-')
      c = '_';
  return out.empty() ? "answer" : out;
}

std::string body_of(const config::provider& p, const chat_request& r) {
  const auto& can = p.capabilities;
  // Held as long as the answer takes: without a growing string's spare room.
  constexpr std::size_t other_members = 512;
  std::size_t size = other_members + r.tools_json.size() + r.schema_json.size();
  for (const auto& m : r.messages)
    size += m.size() + 1;
  std::string body;
  body.reserve(size);
  body += R"({"model":)" + to_text(r.model);
  body += can.stream ? R"(,"stream":true)" : R"(,"stream":false)";
  if (can.stream && can.stream_usage)
    body += R"(,"stream_options":{"include_usage":true})";
  if (r.temperature)
    body += R"(,"temperature":)" + to_text(*r.temperature);
  if (r.max_output_tokens > 0)
    body += (wants_completion_tokens(p) ? R"(,"max_completion_tokens":)" : R"(,"max_tokens":)") +
            std::to_string(r.max_output_tokens);
  if (can.tools && !r.tools_json.empty())
    body += R"(,"tools":)" + r.tools_json;
  if (can.tools && !r.tools_json.empty() && !r.forced_tool.empty())
    body +=
        R"(,"tool_choice":{"type":"function","function":{"name":)" + to_text(r.forced_tool) + "}}";
  const bool in_words = !r.schema_json.empty() && !can.schema;
  if (!r.schema_json.empty() && can.schema)
    body += R"(,"response_format":{"type":"json_schema","json_schema":{"name":)" +
            to_text(schema_name(r.schema_name)) +
            (fits_strict(r.schema_json) ? R"(,"strict":true,"schema":)"
                                        : R"(,"strict":false,"schema":)") +
            r.schema_json + "}}";
  body += R"(,"messages":[)";
  const auto messages = in_words ? with_words(r.messages, words_for(r.schema_json)) : r.messages;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0)
      body += ',';
    body += messages[i];
  }
  return body + "]}";
}

} // namespace

message_json system_message(std::string_view text) {
  return message_of("system", text);
}

message_json user_message(std::string_view text) {
  return message_of("user", text);
}

message_json tool_message(std::string_view call_id, std::string_view text) {
  return R"({"role":"tool","tool_call_id":)" + to_text(json(call_id)) + R"(,"content":)" +
         to_text(json(text)) + '}';
}

http_request make_request(const config::provider& p, const chat_request& r,
                          const std::string& key) {
  http_request out;
  out.url = p.base_url + "/chat/completions";
  out.headers = {
      {"Content-Type", "application/json"},
      {"Accept", p.capabilities.stream ? "text/event-stream" : "application/json"},
      {"User-Agent", "boyd/" BOYD_VERSION},
  };
  if (!key.empty())
    out.headers.emplace_back("Authorization", "Bearer " + key);
  for (const auto& header : p.headers) {
    std::erase_if(out.headers, [&](const auto& present) { return same_name(present, header); });
    out.headers.push_back(header);
  }
  out.body = body_of(p, r);
  out.connect_timeout = p.connect_timeout;
  out.timeout = p.request_timeout;
  return out;
}

} // namespace boyd::model
