#include "boyd/model/chat.hpp"
#include "unit/model/answers.hpp"

#include <rapidcheck.h>

namespace boyd::request_test {

using namespace boyd;
using namespace boyd::model_test;
using model::chat_request;

namespace {

config::provider endpoint() {
  config::provider p;
  p.provider_id = "p";
  p.base_url = "https://host/v1";
  return p;
}

chat_request simple() {
  chat_request r;
  r.model = "m";
  r.messages = {model::system_message("be brief"), model::user_message("hi")};
  return r;
}

json body_of(const config::provider& p, const chat_request& r) {
  return json::parse(model::make_request(p, r, "").body);
}

std::string header(const http_request& r, const std::string& name) {
  std::string found;
  for (const auto& [key, value] : r.headers)
    if (key == name)
      found += (found.empty() ? "" : " and ") + value;
  return found;
}

} // namespace

TEST_CASE("request: what is sent", "[request]") {
  auto p = endpoint();
  p.headers = {{"X-Title", "Boyd"}};
  p.connect_timeout = 3s;
  p.request_timeout = 4min;
  auto r = simple();
  r.temperature = 0.5;
  const auto out = model::make_request(p, r, "secret");
  CHECK(out.method == "POST");
  CHECK(out.url == "https://host/v1/chat/completions");
  CHECK(header(out, "Authorization") == "Bearer secret");
  CHECK(header(out, "Accept") == "text/event-stream");
  CHECK(header(out, "Content-Type") == "application/json");
  CHECK(header(out, "User-Agent").rfind("boyd/", 0) == 0);
  CHECK(header(out, "X-Title") == "Boyd");
  CHECK(out.connect_timeout == 3s);
  CHECK(out.timeout == 4min);
  CHECK(json::parse(out.body) ==
        json::parse(R"({"model":"m","stream":true,"stream_options":{"include_usage":true},
                        "temperature":0.5,"messages":[{"role":"system","content":"be brief"},
                        {"role":"user","content":"hi"}]})"));
  CHECK(out.body.find("secret") == std::string::npos);
  CHECK(header(model::make_request(p, r, ""), "Authorization").empty());
}

TEST_CASE("request: the provider's headers stand in place of ours", "[request]") {
  auto p = endpoint();
  p.headers = {{"user-agent", "mine"}, {"authorization", "Basic x"}};
  const auto out = model::make_request(p, simple(), "secret");
  CHECK(header(out, "User-Agent").empty());
  CHECK(header(out, "user-agent") == "mine");
  CHECK(header(out, "Authorization").empty());
}

TEST_CASE("request: what the provider cannot do is left out", "[request]") {
  auto p = endpoint();
  auto r = simple();
  r.tools_json = R"([{"type":"function","function":{"name":"t"}}])";
  r.schema_json = R"({"type":"object"})";
  CHECK(body_of(p, r)["tools"][0]["function"]["name"] == "t");
  p.capabilities = {.tools = false, .schema = false, .stream = false, .stream_usage = true};
  const auto out = model::make_request(p, r, "");
  const auto body = json::parse(out.body);
  CHECK_FALSE(body.contains("tools"));
  CHECK_FALSE(body.contains("response_format"));
  CHECK_FALSE(body.contains("stream_options"));
  CHECK(body["stream"] == false);
  CHECK(header(out, "Accept") == "application/json");
  // The schema in words, at the end of what the system says, and nowhere else.
  const auto words = body["messages"][0]["content"].get<std::string>();
  CHECK(words.rfind("be brief\n\n", 0) == 0);
  CHECK(words.find(r.schema_json) != std::string::npos);
  CHECK(body["messages"].size() == 2);
  p.capabilities.stream = true;
  p.capabilities.stream_usage = false;
  CHECK_FALSE(body_of(p, r).contains("stream_options"));
  r.messages = {model::user_message("hi")};
  CHECK(body_of(p, r)["messages"][0]["role"] == "system");
  CHECK(body_of(p, r)["messages"].size() == 2);
}

TEST_CASE("request: a schema is strict where it keeps the rules", "[request]") {
  const auto strict = [](const std::string& schema) {
    auto r = simple();
    r.schema_json = schema;
    r.schema_name = "my answer!";
    const auto format = body_of(endpoint(), r)["response_format"];
    CHECK(format["type"] == "json_schema");
    CHECK(format["json_schema"]["name"] == "my_answer_");
    CHECK(format["json_schema"]["schema"] == json::parse(schema));
    return format["json_schema"]["strict"].get<bool>();
  };
  CHECK(strict(
      R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false})"));
  CHECK(strict(R"({"type":"object","properties":{},"additionalProperties":false})"));
  CHECK(strict(
      R"({"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}]}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"object","properties":{},"additionalProperties":false}}})"));
  for (
      const std::string loose :
      {R"({"type":"object"})",
       R"({"type":"object","properties":{"a":{}},"additionalProperties":false})",
       R"({"type":"object","properties":{"a":{}},"required":["a"]})",
       R"({"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false})",
       R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false})",
       R"({"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false})",
       R"({"type":"object","properties":{},"additionalProperties":false,"$defs":{"x":{"type":"object"}}})",
       R"({"type":"array","items":{"type":"string"}})", R"({"type":"string"})"}) {
    INFO(loose);
    CHECK_FALSE(strict(loose));
  }
}

TEST_CASE("request: the limit of an answer has two names", "[request]") {
  auto r = simple();
  auto p = endpoint();
  CHECK_FALSE(body_of(p, r).contains("max_tokens"));
  r.max_output_tokens = 99;
  CHECK(body_of(p, r)["max_tokens"] == 99);
  p.preset = "openai";
  CHECK(body_of(p, r)["max_completion_tokens"] == 99);
  CHECK_FALSE(body_of(p, r).contains("max_tokens"));
  p.preset.clear();
  p.base_url = "https://api.openai.com/v1";
  CHECK(body_of(p, r)["max_completion_tokens"] == 99);
}

TEST_CASE("request: a turn's body begins with the last turn's", "[request]") {
  // Prompt caches hold only for an equal beginning.
  auto r = simple();
  r.tools_json = R"([{"type":"function","function":{"name":"t"}}])";
  r.schema_json = R"({"type":"object"})";
  for (const bool schema : {true, false}) {
    auto p = endpoint();
    p.capabilities.schema = schema;
    auto body = model::make_request(p, r, "").body;
    auto next = r;
    next.messages.push_back(R"({"role":"assistant","content":"x"})");
    next.messages.push_back(model::tool_message("c", "y"));
    body.resize(body.size() - 2); // "]}"
    CHECK(model::make_request(p, next, "").body.rfind(body, 0) == 0);
  }
}

TEST_CASE("request: any bytes make valid JSON", "[request]") {
  CHECK(rc::check("messages and names", [](const std::string& text) {
    auto r = simple();
    r.model = text;
    r.schema_name = text;
    r.schema_json = "{}";
    r.messages = {model::system_message(text), model::user_message(text),
                  model::tool_message(text, text)};
    const auto body = body_of(endpoint(), r);
    RC_ASSERT(body["messages"].size() == 3U);
    RC_ASSERT(body["messages"][2]["role"] == "tool");
  }));
}

TEST_CASE("usage: tokens are estimated", "[usage]") {
  CHECK(model::estimate_tokens("") == 0);
  CHECK(model::estimate_tokens("a") == 1);
  CHECK(model::estimate_tokens("abcd") == 1);
  CHECK(model::estimate_tokens(std::string(4001, 'x')) == 1001);
}

TEST_CASE("usage: what it costs, rounded up", "[usage]") {
  auto p = endpoint();
  const model::usage used{1'000'000, 400'000, 100'000, 50'000, true};
  CHECK(model::cost_of(p, "m", used) == 0);
  p.prices["m"] = {.input = 2'500'000, .cached_input = 1'250'000, .output = 10'000'000};
  p.prices["*"] = {.input = 1, .cached_input = 1, .output = 1};
  CHECK(model::cost_of(p, "m", used) == 1'500'000 + 500'000 + 1'000'000);
  CHECK(model::cost_of(p, "other", {1, 0, 0, 0, true}) == 1);
  CHECK(model::cost_of(p, "other", {1, 0, 1, 0, true}) == 1);
  CHECK(model::cost_of(p, "m", {}) == 0);
  // Numbers that make no sense neither overflow nor pay back.
  CHECK(model::cost_of(p, "m", {-5, -5, -5, 0, true}) == 0);
  CHECK(model::cost_of(p, "m", {1, 100, 0, 0, true}) == 2);
  p.prices["m"] = {.input = INT64_MAX, .cached_input = INT64_MAX, .output = INT64_MAX};
  CHECK(model::cost_of(p, "m", {INT64_MAX, 0, INT64_MAX, 0, true}) == INT64_MAX);
}

TEST_CASE("usage: a bill is exact", "[usage]") {
  CHECK(rc::check("as with wide numbers", [] {
    const auto count = rc::gen::inRange<std::int64_t>(0, 10'000'000);
    const auto price = rc::gen::inRange<std::int64_t>(0, 100'000'000);
    auto p = endpoint();
    p.prices["*"] = {.input = *price, .cached_input = *price, .output = *price};
    const model::usage u{*count, 0, *count, 0, true};
    const auto exact = u.input * p.prices["*"].input + u.output * p.prices["*"].output;
    RC_ASSERT(model::cost_of(p, "m", u) == (exact + 999'999) / 1'000'000);
  }));
}

} // namespace boyd::request_test
