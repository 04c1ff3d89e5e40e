#include "boyd/model/chat.hpp"
#include "fuzz/target.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace boyd::fuzz {
namespace {

using model::answer_reader;
using outcome = std::variant<model::chat_answer, model::trouble>;

outcome read(int status, std::string_view body, std::size_t first, std::size_t piece) {
  answer_reader reader(1u << 20);
  http_head head;
  head.status = status;
  reader.on_head(head);
  std::size_t progress = 0;
  while (!body.empty()) {
    const auto size = std::min(first, body.size());
    reader.on_body(body.substr(0, size));
    body.remove_prefix(size);
    first = piece;
    require(reader.progress() >= progress, "progress does not go back");
    progress = reader.progress();
  }
  return reader.finish({});
}

void check_answer(const model::chat_answer& answer) {
  const auto message = nlohmann::json::parse(answer.message, nullptr, false);
  require(message.is_object(), "the message is a JSON object");
  require(message.value("role", "") == "assistant", "the message is the assistant's");
  const auto calls = message.find("tool_calls");
  require(answer.calls.size() == (calls == message.end() ? 0 : calls->size()),
          "each call is in the message");
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    const auto& call = (*calls)[i];
    require(call["id"] == answer.calls[i].id && !answer.calls[i].id.empty(), "a call has its id");
    for (std::size_t j = 0; j < i; ++j)
      require(answer.calls[j].id != answer.calls[i].id, "ids of calls differ");
    const auto arguments =
        nlohmann::json::parse(call["function"]["arguments"].get<std::string>(), nullptr, false);
    require(arguments.is_object(), "arguments that are sent back are an object");
  }
  const auto& u = answer.used;
  require(u.input >= 0 && u.cached >= 0 && u.output >= 0 && u.reasoning >= 0 &&
              u.cached <= u.input && u.reasoning <= u.output,
          "usage makes sense");
  const auto other = model::portable_message(answer.message);
  require(model::portable_message(other) == other, "a portable message is one");
}

void check_trouble(const model::trouble& t) {
  require(!t.what.empty(), "a trouble says what it is");
  require(t.what.find_first_of("\r\n") == std::string::npos, "a trouble is one line");
  require(t.what.find("sk-") == std::string::npos || t.what.size() < 2000, "a trouble is short");
  (void)model::wait_before_repeat(t, 0, 0.5);
}

/// A first byte for the status, a second one for the cut, then the body. However the body is cut,
/// the same comes of it.
void run(std::string_view input) {
  reader in(input);
  const int status = (in.byte() & 3) == 3 ? 400 + in.byte() : 200;
  const auto cut = std::size_t{in.byte()};
  const auto body = in.rest();
  const auto whole = read(status, body, body.size(), body.size());
  const auto pieces = read(status, body, cut + 1, cut % 7 + 1);
  require(whole.index() == pieces.index(), "the cut does not matter");
  if (const auto* answer = std::get_if<model::chat_answer>(&whole)) {
    check_answer(*answer);
    const auto& same = std::get<model::chat_answer>(pieces);
    require(answer->message == same.message && answer->text == same.text &&
                answer->calls == same.calls && answer->used == same.used &&
                answer->stop == same.stop,
            "the cut does not change the answer");
  } else {
    check_trouble(std::get<model::trouble>(whole));
    require(std::get<model::trouble>(whole).kind == std::get<model::trouble>(pieces).kind,
            "the cut does not change the trouble");
  }
}

const registration registered{"model_answer", run};

} // namespace
} // namespace boyd::fuzz
