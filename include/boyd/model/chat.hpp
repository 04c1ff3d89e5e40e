#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/result.hpp"
#include "boyd/model/sse.hpp"
#include "boyd/model/trouble.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// OpenAI-compatible chat completions: requests and answers.
/// Source of the format: platform.openai.com/docs/api-reference/chat.
namespace boyd::model {

/// What one call used. Reasoning tokens are part of the output, cached ones part of the input.
struct usage {
  std::int64_t input = 0;
  std::int64_t cached = 0;
  std::int64_t output = 0;
  std::int64_t reasoning = 0;
  bool reported = false; ///< by the provider; false: estimated

  bool operator==(const usage&) const = default;
};

/// About four bytes a token: for reservations, and where a provider reports nothing.
std::int64_t estimate_tokens(std::string_view text) noexcept;

/// The input tokens of a conversation's first call, as Boyd estimates and a provider counts them.
struct input_count {
  std::int64_t estimated = 0;
  std::int64_t counted = 0;
};

/// In millionths of a US dollar, rounded up; 0 for a model without a price.
std::int64_t cost_of(const config::provider& p, const std::string& model, const usage& u) noexcept;

/// Cuts a provider's report to the tokens that one call can have used: a token is a byte of the
/// request at least. `output_limit` is the request's limit of output tokens; 0: none. Returns what
/// was cut, for people; empty: nothing was.
std::string cap_usage(usage& used, std::size_t request_bytes, std::int64_t output_limit);

/// A message as JSON text, exactly as it goes to the provider.
using message_json = std::string;

message_json system_message(std::string_view text);
message_json user_message(std::string_view text);
/// The answer to a tool call.
message_json tool_message(std::string_view call_id, std::string_view text);

/// One call of a tool that the model wants. `arguments` is the model's text: any bytes.
struct tool_call {
  std::string id;
  std::string name;
  std::string arguments;

  bool operator==(const tool_call&) const = default;
};

/// An assistant's message without what only its own provider understands (reasoning, signatures):
/// for a fallback to another one. A message that is none comes back as it is.
message_json portable_message(const message_json& message);

/// What an answer may use where nobody names a limit: it is sent as the limit of the call, and
/// reserved.
inline constexpr std::int64_t assumed_output_tokens = 8192;

/// What one call asks for.
struct chat_request {
  std::string model;
  std::vector<message_json> messages;
  std::string tools_json;  ///< an array of function tools, in a fixed order; empty: none
  std::string forced_tool; ///< the one of them that must be called; empty: as the model likes
  std::string schema_json; ///< JSON Schema of the answer; empty: any text
  std::string schema_name = "answer";
  std::optional<double> temperature;
  std::int64_t max_output_tokens = 0; ///< 0: the provider's default
};

/// The HTTP request for it. `key`: empty for none. The messages come last and nothing before them
/// changes from turn to turn, so that prompt caches hold. What the provider cannot do
/// (capabilities) is left out: the schema is then asked for in words, at the end of the first
/// system message (many chat templates take a system message nowhere else, and the prompt cache
/// holds).
http_request make_request(const config::provider& p, const chat_request& r, const std::string& key);

/// Why the model stopped.
enum class stop_reason : std::uint8_t { stop, tool_calls, length, content_filter, other };

/// An answer that is complete. With `length` the last call's arguments may be cut off.
struct chat_answer {
  std::string text;
  std::string refusal; ///< the model declined in these words
  std::vector<tool_call> calls;
  stop_reason stop = stop_reason::other;
  message_json message; ///< to be sent back as it is, unknown fields included
  std::string model;    ///< that answered, as it calls itself
  std::string id;       ///< of the completion; for the record
  usage used;
};

/// Reads one answer, plain or streamed, as it arrives.
///
/// `message` is rebuilt from the pieces of a stream: strings of text and of unknown fields are
/// joined, names and signatures are replaced, objects merge, arrays merge by `index`. It differs
/// from what came where servers refuse their own words (src/model/delta.cpp says which).
///
/// Without usage from the provider `used.output` is estimated from the answer; `used.input` is 0:
/// only the caller knows the request.
/// Bounded: an answer beyond `max_bytes`, a
/// JSON text deeper than core's limit, bytes that are no UTF-8, or a stream without its end
/// ("[DONE]" or a finish reason) are a trouble. Not thread-safe.
class answer_reader {
 public:
  explicit answer_reader(std::size_t max_bytes = 64u << 20);

  void on_head(const http_head& head);
  void on_body(std::string_view bytes);
  /// After the transport's end. Once.
  std::variant<chat_answer, trouble> finish(const result<void>& transport);

  /// Bytes of text, reasoning and arguments so far: progress, for no_output_timeout.
  std::size_t progress() const { return progress_; }
  /// The text so far.
  const std::string& text() const;

 private:
  struct state; // answer.cpp

  void take_events(std::string_view bytes);

  std::size_t progress_ = 0;
  std::shared_ptr<state> state_;
};

} // namespace boyd::model
