#include "support/model_answers.hpp"

#include <algorithm>
#include <array>

namespace boyd::test {

namespace {

using nlohmann::json;

constexpr std::int64_t created = 1'700'000'000;

/// One of `pieces` about equal parts; where it would cut a character it ends later.
std::string_view take_piece(std::string_view& rest, std::size_t pieces_left) {
  auto n = (rest.size() + pieces_left - 1) / pieces_left;
  while (n < rest.size() && (static_cast<unsigned char>(rest[n]) & 0xc0u) == 0x80u)
    ++n;
  const auto piece = rest.substr(0, n);
  rest.remove_prefix(n);
  return piece;
}

json error_json(std::string_view message, std::string_view type, std::string_view code) {
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", nullptr},
            {"code", code.empty() ? json(nullptr) : json(code)}}}};
}

/// RFC 1952 §2.3: no name, no time, unknown system.
constexpr std::string_view gzip_head("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);

/// RFC 1952 §8, bit by bit.
std::uint32_t crc32(std::string_view bytes) {
  constexpr std::uint32_t polynomial = 0xedb88320u;
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? polynomial : 0u);
  }
  return ~crc;
}

std::string little_endian(std::uint32_t n, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>((n >> (8 * i)) & 0xffu));
  return text;
}

/// Bits of a deflate stream, the lowest of a byte first (RFC 1951 §3.1.1).
class bit_writer {
 public:
  void put(std::string_view bits) {
    for (const char b : bits) {
      if (used_ == 0)
        bytes_.push_back('\0');
      if (b == '1')
        bytes_.back() = static_cast<char>(static_cast<unsigned char>(bytes_.back()) | 1u << used_);
      used_ = (used_ + 1) % 8;
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  unsigned used_ = 0;
};

model_answer with_type(std::string_view type) {
  model_answer a;
  a.header("content-type", std::string(type));
  return a;
}

} // namespace

model_answer& model_answer::header(std::string name, std::string value) {
  headers.emplace_back(std::move(name), std::move(value));
  return *this;
}
model_answer& model_answer::send(std::string text) {
  steps.emplace_back(bytes{std::move(text)});
  return *this;
}
model_answer& model_answer::wait(gate_ptr at) {
  steps.emplace_back(wait_at{std::move(at)});
  return *this;
}
model_answer& model_answer::send_repeated(std::string text, std::size_t times) {
  steps.emplace_back(repeat{std::move(text), times});
  return *this;
}
model_answer& model_answer::send_slowly(std::string text, std::size_t piece,
                                        std::chrono::milliseconds every) {
  steps.emplace_back(drip{std::move(text), piece, every});
  return *this;
}
model_answer& model_answer::hang_up() {
  steps.emplace_back(drop{});
  return *this;
}
model_answer& model_answer::hang_up_rudely() {
  steps.emplace_back(drop{true});
  return *this;
}

json usage_json(const token_figures& f) {
  return {{"prompt_tokens", f.prompt},
          {"completion_tokens", f.completion},
          {"total_tokens", f.prompt + f.completion},
          {"prompt_tokens_details", {{"cached_tokens", f.cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", f.reasoning}}}};
}

json tool_call_json(std::string_view id, std::string_view name, std::string_view arguments) {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

json completion_json(const json& message, std::string_view finish_reason,
                     const token_figures& figures) {
  return {{"id", "chatcmpl-test"},
          {"object", "chat.completion"},
          {"created", created},
          {"model", "test-model"},
          {"choices",
           json::array({{{"index", 0}, {"message", message}, {"finish_reason", finish_reason}}})},
          {"usage", usage_json(figures)}};
}

model_answer json_answer(const json& body, int status) {
  auto a = with_type("application/json");
  a.status = status;
  return a.send(body.dump());
}

model_answer text_answer(std::string_view text, const token_figures& figures) {
  return json_answer(completion_json({{"role", "assistant"}, {"content", text}}, "stop", figures));
}

model_answer tool_answer(std::string_view id, std::string_view name, std::string_view arguments) {
  return json_answer(
      completion_json({{"role", "assistant"},
                       {"content", nullptr},
                       {"tool_calls", json::array({tool_call_json(id, name, arguments)})}},
                      "tool_calls"));
}

chat_stream::chat_stream(std::string_view model)
    : model_(model), answer_(with_type("text/event-stream")) {}

chat_stream& chat_stream::raw(std::string bytes) {
  answer_.send(std::move(bytes));
  return *this;
}

chat_stream& chat_stream::event(const json& data) {
  return raw("data: " + data.dump() + "\n\n");
}

chat_stream& chat_stream::chunk(const json& choices) {
  return event({{"id", "chatcmpl-test"},
                {"object", "chat.completion.chunk"},
                {"created", created},
                {"model", model_},
                {"choices", choices}});
}

chat_stream& chat_stream::delta(const json& delta) {
  return chunk(json::array({{{"index", 0}, {"delta", delta}, {"finish_reason", nullptr}}}));
}

chat_stream& chat_stream::role() {
  return delta({{"role", "assistant"}, {"content", ""}});
}

chat_stream& chat_stream::text(std::string_view text, std::size_t pieces) {
  for (; pieces > 0 && !text.empty(); --pieces)
    delta({{"content", take_piece(text, pieces)}});
  return *this;
}

chat_stream& chat_stream::refusal(std::string_view text) {
  return delta({{"refusal", text}});
}

chat_stream& chat_stream::reasoning(std::string_view text) {
  return delta({{"reasoning_content", text}});
}

chat_stream& chat_stream::tool_begin(int index, std::string_view id, std::string_view name) {
  auto call = tool_call_json(id, name, "");
  call["index"] = index;
  return delta({{"tool_calls", json::array({call})}});
}

chat_stream& chat_stream::tool_fragment(int index, std::string_view arguments) {
  const json call{{"index", index}, {"function", {{"arguments", arguments}}}};
  return delta({{"tool_calls", json::array({call})}});
}

chat_stream& chat_stream::tool_call(int index, std::string_view id, std::string_view name,
                                    std::string_view arguments, std::size_t fragments) {
  tool_begin(index, id, name);
  for (; fragments > 0 && !arguments.empty(); --fragments)
    tool_fragment(index, take_piece(arguments, fragments));
  return *this;
}

chat_stream& chat_stream::finish(std::string_view reason) {
  return chunk(json::array({{{"index", 0}, {"delta", json::object()}, {"finish_reason", reason}}}));
}

chat_stream& chat_stream::usage(const token_figures& figures) {
  return event({{"id", "chatcmpl-test"},
                {"object", "chat.completion.chunk"},
                {"created", created},
                {"model", model_},
                {"choices", json::array()},
                {"usage", usage_json(figures)}});
}

chat_stream& chat_stream::error(std::string_view message, std::string_view type,
                                std::string_view code) {
  return event(error_json(message, type, code));
}

chat_stream& chat_stream::wait(gate_ptr at) {
  answer_.wait(std::move(at));
  return *this;
}

model_answer chat_stream::done() {
  return raw("data: [DONE]\n\n").without_done();
}

model_answer chat_stream::without_done() {
  return answer_;
}

model_answer chat_stream::broken_off() {
  answer_.hang_up();
  return answer_;
}

model_answer stream_answer(std::string_view text, std::size_t pieces,
                           const token_figures& figures) {
  return chat_stream().role().text(text, pieces).finish().usage(figures).done();
}

model_answer error_answer(int status, std::string_view message, std::string_view type,
                          std::string_view code) {
  return json_answer(error_json(message, type, code), status);
}

model_answer quota_exceeded() {
  return error_answer(429, "You exceeded your current quota.", "insufficient_quota",
                      "insufficient_quota");
}

model_answer rate_limited() {
  return error_answer(429, "Rate limit reached.", "requests", "rate_limit_exceeded");
}

model_answer rate_limited(int retry_after) {
  return rate_limited().header("Retry-After", std::to_string(retry_after));
}

model_answer rate_limited_ms(int ms) {
  return rate_limited().header("retry-after-ms", std::to_string(ms));
}

model_answer server_failure() {
  return error_answer(500, "The server had an error.", "server_error");
}

model_answer overloaded() {
  return error_answer(503, "The engine is overloaded.", "overloaded_error", "overloaded");
}

model_answer bad_key() {
  return error_answer(401, "Incorrect API key provided.", "invalid_request_error",
                      "invalid_api_key");
}

model_answer context_too_long() {
  return error_answer(400, "This model's maximum context length is 8192 tokens.",
                      "invalid_request_error", "context_length_exceeded");
}

model_answer overloaded_in_stream() {
  return chat_stream()
      .role()
      .text("I")
      .error("Overloaded", "overloaded_error", "overloaded")
      .without_done();
}

model_answer garbage() {
  model_answer a;
  a.end = framing::raw;
  return a.send("\x16\x03\x01 this is no HTTP\r\n\r\n");
}

model_answer no_json() {
  return with_type("application/json").send("<html>It works!</html>");
}

model_answer deep_json(std::size_t depth) {
  return with_type("application/json")
      .send(R"({"choices":[{"index":0,"message":{"role":"assistant","content":)" +
            std::string(depth, '[') + std::string(depth, ']') + "}}]}");
}

model_answer endless_line() {
  return with_type("text/event-stream").send("data: ").send_repeated(std::string(16u << 10, 'x'));
}

model_answer endless_body() {
  return with_type("application/json").send("\"").send_repeated(std::string(16u << 10, 'x'));
}

model_answer gzip_bomb() {
  // A block with the fixed codes (RFC 1951 §3.2.6) that does not end: a zero, then again and again
  // "258 bytes from one byte before": 8 bits for the length, 5 for the distance. Eight of them are
  // 13 whole bytes; one more at the beginning brings the first to a byte's border.
  constexpr std::string_view again = "1100010100000";
  constexpr int at_once = 1260;
  bit_writer first;
  first.put("010");      // not the last block; fixed codes
  first.put("00110000"); // the byte 0
  first.put(again);
  bit_writer rest;
  for (int i = 0; i < at_once * 8; ++i)
    rest.put(again);
  auto a = with_type("application/json");
  a.header("content-encoding", "gzip");
  return a.send(std::string(gzip_head) + first.bytes()).send_repeated(rest.bytes());
}

model_answer gzipped(const std::string& body, std::string_view content_type) {
  constexpr std::size_t most_stored = 0xffff;
  std::string packed(gzip_head);
  for (std::size_t at = 0; at <= body.size(); at += most_stored) {
    const auto part = body.substr(at, most_stored);
    const auto size = static_cast<std::uint32_t>(part.size());
    packed += at + most_stored > body.size() ? '\x01' : '\0';
    packed += little_endian(size, 2) + little_endian(~size, 2) + part;
  }
  packed +=
      little_endian(crc32(body), 4) + little_endian(static_cast<std::uint32_t>(body.size()), 4);
  return with_type(content_type).header("content-encoding", "gzip").send(packed);
}

model_answer wrong_charset(bool declared) {
  return with_type(declared ? "application/json; charset=ISO-8859-1" : "application/json")
      .send("{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
            "\"Gr\xfc\xdf" // in two pieces: "e" would belong to the number
            "e\"},\"finish_reason\":\"stop\"}]}");
}

model_answer slow_drip(std::chrono::milliseconds every) {
  const auto body = completion_json({{"role", "assistant"}, {"content", "slow"}});
  return with_type("application/json").send_slowly(body.dump(), 1, every);
}

} // namespace boyd::test
