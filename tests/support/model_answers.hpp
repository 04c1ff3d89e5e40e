#pragma once

#include "support/model_endpoint.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// What OpenAI-compatible endpoints usually answer, and what bad ones do.
namespace boyd::test {

/// The `usage` object of an answer.
struct token_figures {
  std::int64_t prompt = 11;
  std::int64_t completion = 7;
  std::int64_t cached = 0;    ///< of prompt
  std::int64_t reasoning = 0; ///< of completion
};
nlohmann::json usage_json(const token_figures& figures);

/// One entry of a message's `tool_calls`; `arguments` is JSON as text.
nlohmann::json tool_call_json(std::string_view id, std::string_view name,
                              std::string_view arguments);

/// A whole `chat.completion` object with this message.
nlohmann::json completion_json(const nlohmann::json& message,
                               std::string_view finish_reason = "stop",
                               const token_figures& figures = {});

/// 200 with a JSON body.
model_answer json_answer(const nlohmann::json& body, int status = 200);
/// A plain completion with this text.
model_answer text_answer(std::string_view text, const token_figures& figures = {});
/// A plain completion whose message calls one tool.
model_answer tool_answer(std::string_view id, std::string_view name, std::string_view arguments);

/// An answer in events (`stream: true`), put together from left to right:
/// `chat_stream().role().text("Hello", 3).finish("stop").usage({}).done()`.
class chat_stream {
 public:
  explicit chat_stream(std::string_view model = "test-model");

  chat_stream& role();
  /// In so many chunks; a character of several bytes is not cut.
  chat_stream& text(std::string_view text, std::size_t pieces = 1);
  chat_stream& refusal(std::string_view text);
  /// `reasoning_content`, as several servers send it.
  chat_stream& reasoning(std::string_view text);
  /// A tool call: the first chunk has id and name, the arguments follow in so many fragments.
  chat_stream& tool_call(int index, std::string_view id, std::string_view name,
                         std::string_view arguments, std::size_t fragments = 1);
  /// The begin of a tool call without arguments, and a fragment of them: to mix parallel calls.
  chat_stream& tool_begin(int index, std::string_view id, std::string_view name);
  chat_stream& tool_fragment(int index, std::string_view arguments);
  chat_stream& finish(std::string_view reason = "stop");
  /// The chunk with `choices: []`.
  chat_stream& usage(const token_figures& figures = {});
  /// A choice's delta as it is.
  chat_stream& delta(const nlohmann::json& delta);
  /// Any event, any bytes.
  chat_stream& event(const nlohmann::json& data);
  chat_stream& raw(std::string bytes);
  /// An `error` object where a chunk should be.
  chat_stream& error(std::string_view message, std::string_view type, std::string_view code = {});
  chat_stream& wait(gate_ptr at);

  /// With `data: [DONE]`.
  model_answer done();
  /// Ends as HTTP ends, without [DONE].
  model_answer without_done();
  /// The connection breaks here.
  model_answer broken_off();

 private:
  chat_stream& chunk(const nlohmann::json& choices);

  std::string model_;
  model_answer answer_;
};

/// role, text in pieces, finish "stop", usage, [DONE].
model_answer stream_answer(std::string_view text, std::size_t pieces = 3,
                           const token_figures& figures = {});

/// `{"error":{message,type,param,code}}` with this status.
model_answer error_answer(int status, std::string_view message, std::string_view type,
                          std::string_view code = {});
model_answer quota_exceeded();              ///< 429 insufficient_quota: never to be repeated
model_answer rate_limited();                ///< 429 rate_limit_exceeded, no header
model_answer rate_limited(int retry_after); ///< with Retry-After, seconds
model_answer rate_limited_ms(int ms);       ///< with retry-after-ms
model_answer server_failure();              ///< 500
model_answer overloaded();                  ///< 503 overloaded
model_answer bad_key();                     ///< 401 invalid_api_key
model_answer context_too_long();            ///< 400 context_length_exceeded
model_answer overloaded_in_stream();        ///< 200, an event, then an error object: overloaded

/// Bytes that are no HTTP.
model_answer garbage();
/// 200, but the body is no JSON.
model_answer no_json();
/// A completion whose content holds so many brackets inside each other.
model_answer deep_json(std::size_t depth);
/// A stream of one event whose line does not end, without end.
model_answer endless_line();
/// A body without end.
model_answer endless_body();
/// A completion in gzip that unpacks to about 158 times what is sent, without end.
model_answer gzip_bomb();
/// This answer's body packed with gzip (stored, not compressed).
model_answer gzipped(const std::string& body, std::string_view content_type = "application/json");
/// A completion in ISO 8859-1 whose text is no UTF-8, as such declared or not.
model_answer wrong_charset(bool declared = true);
/// A completion of which one byte comes every so often.
model_answer slow_drip(std::chrono::milliseconds every);

} // namespace boyd::test
