#include "unit/model/answers.hpp"

using namespace boyd;
using namespace boyd::model_test;
using model::chat_answer;
using model::stop_reason;
using model::trouble_kind;

TEST_CASE("answer: a stream as OpenAI sends it", "[answer]") {
  const auto a = answer_of(stream({
      R"({"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null})",
      R"({"id":"c1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]})",
      R"({"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]})",
      R"({"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})",
      R"({"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}})",
  }));
  CHECK(a.text == "Hello");
  CHECK(a.stop == stop_reason::stop);
  CHECK(a.model == "gpt-x");
  CHECK(a.id == "c1");
  CHECK(a.used == model::usage{10, 4, 7, 5, true});
  CHECK(json_of(a) == json{{"role", "assistant"}, {"content", "Hello"}});
}
