#include "boyd/core/text.hpp"
#include "boyd/model/chat.hpp"
#include "delta.hpp"
#include "json.hpp"
#include "usage.hpp"

#include <algorithm>
#include <utility>

namespace boyd::model {
namespace {

using nlohmann::json;

/// Of an answer that is not 2xx: an error, or a proxy's page.
constexpr std::size_t error_bytes = 256u << 10;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view end_of_stream = "[DONE]";
constexpr int http_ok_first = 200;
constexpr int http_ok_last = 299;

trouble bad_answer(std::string what) {
  trouble out;
  out.kind = trouble_kind::bad_answer;
  out.what = std::move(what);
  return out;
}

stop_reason stop_from(std::string_view word) {
  if (word == "stop" || word == "eos" || word == "end_turn" || word == "stop_sequence")
    return stop_reason::stop;
  if (word == "tool_calls" || word == "tool_use" || word == "function_call")
    return stop_reason::tool_calls;
  if (word == "length" || word == "max_tokens" || word == "model_length")
    return stop_reason::length;
  if (word == "content_filter" || word == "safety" || word == "refusal" || word == "sensitive")
    return stop_reason::content_filter;
  return stop_reason::other;
}

/// Reasons that are errors: OpenRouter's, DeepSeek's and Zhipu's.
bool is_failure(std::string_view reason) {
  return reason == "error" || reason == "insufficient_system_resource" || reason == "network_error";
}

bool is_error(const json& value) {
  if (value.is_array())
    return !value.empty() && is_error(value.front());
  if (const auto* error = member(value, "error"))
    return error->is_string() ? !error->get_ref<const std::string&>().empty()
                              : !error->empty() && !error->is_boolean();
  if (value.is_object() && !value.contains("choices"))
    return text_of(value, "object") == "error" || text_of(value, "type") == "error" ||
           value.contains("detail");
  return false;
}

/// The first choice; `n` is never asked for.
const json* first_choice(const json& answer) {
  const auto* choices = member(answer, "choices");
  if (!choices || !choices->is_array())
    return nullptr;
  for (const auto& choice : *choices)
    if (count_of(choice, "index").value_or(0) == 0)
      return &choice;
  return nullptr;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

} // namespace

struct answer_reader::state {
  enum class form : std::uint8_t { unknown, stream, plain };

  std::size_t max_bytes = 0;
  std::size_t bytes = 0;
  bool has_head = false;
  http_head head;
  form shape = form::unknown;
  bool began = false; ///< white space came: no byte order mark may follow
  std::string body;   ///< plain, or of an error
  sse_reader events;
  message_builder message;
  chat_answer answer;
  bool chose = false;    ///< a choice was there
  bool finished = false; ///< a finish reason was there
  bool done = false;     ///< [DONE]
  std::optional<trouble> wrong;

  bool ok() const { return head.status >= http_ok_first && head.status <= http_ok_last; }

  void fail_with(trouble t) {
    if (wrong || done)
      return;
    wrong = std::move(t);
    body.clear();
  }

  void take(const sse_event& event);
  void end_stream();
  void take_json(const json& value, const char* message_key);
  void take_choice(const json& choice, const json& value, const char* message_key);
  void recognise(std::string_view& bytes);
  void end_plain();
  std::variant<chat_answer, trouble> conclude();
};

/// A body that begins like JSON is no stream, whatever its type says; any other one is.
void answer_reader::state::recognise(std::string_view& piece) {
  body += piece;
  piece = {};
  std::string_view start = body;
  const auto mark = began ? 0 : std::min(byte_order_mark.size(), start.size());
  if (mark > 0 && start.substr(0, mark) == byte_order_mark.substr(0, mark)) {
    if (mark < byte_order_mark.size())
      return;
    start.remove_prefix(mark);
  }
  const auto first = start.find_first_not_of(" \t\r\n");
  began = true;
  if (first == std::string_view::npos) {
    body.clear();
    return;
  }
  const char c = start[first];
  shape = c == '{' || c == '[' || c == '<' ? form::plain : form::stream;
  start.remove_prefix(first);
  body = std::string(start);
}

void answer_reader::state::take(const sse_event& event) {
  if (wrong || done)
    return;
  const auto data = trim(event.data);
  if (data.starts_with(end_of_stream)) {
    done = true;
    return;
  }
  if (data.empty())
    return;
  const auto value = parse_piece(data);
  if (!value) {
    if (event.type == "error")
      return fail_with(trouble_of_object(data));
    return fail_with(bad_answer("an event of the stream: " + value.error().what));
  }
  if (event.type == "error" || is_error(*value))
    return fail_with(trouble_of_object(data));
  take_json(*value, "delta");
}

/// What stands at the end without its empty line is an event; half of one is where the stream
/// broke.
void answer_reader::state::end_stream() {
  events.finish([&](const sse_event& event) {
    if (trim(event.data).starts_with(end_of_stream) || parse_piece(trim(event.data)))
      take(event);
  });
}

void answer_reader::state::take_json(const json& value, const char* message_key) {
  if (auto used = read_usage(value))
    answer.used = *used;
  if (answer.id.empty())
    answer.id = text_of(value, "id");
  if (answer.model.empty())
    answer.model = text_of(value, "model");
  if (const auto* choice = first_choice(value))
    take_choice(*choice, value, message_key);
}

void answer_reader::state::take_choice(const json& choice, const json& value,
                                       const char* message_key) {
  chose = true;
  const auto* piece = member(choice, message_key);
  if (!piece) // a server that does not stream may still send events, and the other way round
    piece = member(choice, message_key == std::string_view("delta") ? "message" : "delta");
  if (piece && !message.add(*piece))
    return fail_with(bad_answer("more tool calls than " + std::to_string(calls_of_an_answer)));
  const auto reason = lower(text_of(choice, "finish_reason"));
  if (is_failure(reason)) {
    const auto* error = member(choice, "error");
    return fail_with(trouble_of_object(to_text(error ? *error : json{{"message", reason}})));
  }
  if (const auto* error = member(choice, "error"); error && error->is_object())
    return fail_with(trouble_of_object(to_text(*error)));
  if (!reason.empty()) {
    finished = true;
    answer.stop = stop_from(reason);
  }
  if (const auto used = read_usage(choice); used && !read_usage(value)) // Moonshot
    answer.used = *used;
}

void answer_reader::state::end_plain() {
  const auto text = trim(body);
  if (text.empty())
    return fail_with(bad_answer("the answer is empty"));
  const auto value = parse_json(text);
  if (!value) {
    const bool page = text.front() == '<';
    return fail_with(bad_answer(page ? "the answer is an HTML page, not JSON; check base_url"
                                     : "the answer: " + value.error().what));
  }
  if (is_error(*value))
    return fail_with(trouble_of_object(text));
  take_json(*value, "message");
  finished = finished || chose;
}

std::variant<chat_answer, trouble> answer_reader::state::conclude() {
  if (wrong)
    return *wrong;
  if (!chose)
    return bad_answer(done ? "a stream without an answer" : "the stream ended before an answer");
  if (!done && !finished)
    return bad_answer("the stream ended early");
  const auto size = message.progress();
  message.finish(answer);
  if (!answer.used.reported)
    answer.used.output =
        estimate_tokens(std::string_view()) + static_cast<std::int64_t>((size + 3) / 4);
  // Gemini says "stop" when it calls tools; a word without calls means nothing.
  if (!answer.calls.empty() &&
      (answer.stop == stop_reason::stop || answer.stop == stop_reason::other))
    answer.stop = stop_reason::tool_calls;
  return std::move(answer);
}

answer_reader::answer_reader(std::size_t max_bytes) : state_(std::make_shared<state>()) {
  state_->max_bytes = max_bytes;
}

void answer_reader::on_head(const http_head& head) {
  state_->head = head;
  state_->has_head = true;
}

void answer_reader::on_body(std::string_view bytes) {
  auto& s = *state_;
  if (s.wrong || s.done)
    return;
  if (!s.ok()) {
    s.body.append(bytes.substr(0, error_bytes - std::min(s.body.size(), error_bytes)));
    return;
  }
  if (bytes.size() > s.max_bytes - s.bytes) {
    auto why = bad_answer("the answer is larger than " + std::to_string(s.max_bytes) + " bytes");
    why.should_retry = false;
    return s.fail_with(std::move(why));
  }
  s.bytes += bytes.size();
  if (s.shape == state::form::unknown) {
    s.recognise(bytes);
    if (s.shape != state::form::stream)
      return;
    const auto start = std::exchange(s.body, {});
    return take_events(start);
  }
  if (s.shape == state::form::plain)
    s.body.append(bytes);
  else
    take_events(bytes);
}

void answer_reader::take_events(std::string_view bytes) {
  auto& s = *state_;
  const auto fed = s.events.feed(bytes, [&](const sse_event& event) { s.take(event); });
  if (!fed)
    s.fail_with(bad_answer(fed.error().what));
  // It ends the stream at once, also where the server sends nothing more and keeps the connection.
  constexpr std::size_t longest_end = 64;
  if (s.events.pending() < longest_end && trim(s.events.pending_data()) == end_of_stream)
    s.done = true;
  progress_ = s.message.progress();
}

const std::string& answer_reader::text() const {
  return state_->message.text();
}

std::variant<chat_answer, trouble> answer_reader::finish(const result<void>& transport) {
  auto& s = *state_;
  if (s.wrong)
    return *s.wrong;
  if (s.has_head && !s.ok()) {
    if (!transport && transport.error().code == errc::cancelled)
      return trouble_of_transport(transport.error());
    return trouble_of_answer(s.head, s.body);
  }
  if (s.shape == state::form::stream && transport)
    s.end_stream();
  if (s.wrong)
    return *s.wrong;
  // What is complete counts, however the connection ended; but a finish reason alone is not enough
  // when we ended it ourselves.
  const bool complete = s.done || (s.finished && transport.has_value());
  if (!complete && !transport && (transport.error().code == errc::cancelled || !s.finished))
    return trouble_of_transport(transport.error());
  if (!s.has_head)
    return bad_answer("no answer");
  if (s.shape == state::form::plain)
    s.end_plain();
  return s.conclude();
}

} // namespace boyd::model
