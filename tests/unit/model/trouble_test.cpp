#include "unit/model/answers.hpp"

#include <rapidcheck.h>

namespace boyd::trouble_test {

using namespace boyd;
using namespace boyd::model_test;
using model::may_repeat;
using model::trouble;
using kind = model::trouble_kind;

namespace {

struct said {
  int status;
  std::string body;
  kind means;
};

trouble of(kind k) {
  trouble t;
  t.kind = k;
  return t;
}

trouble with_wait(milliseconds wait) {
  trouble t;
  t.kind = kind::rate_limited;
  t.retry_after = wait;
  return t;
}

http_headers date_is(const std::string& date, const std::string& retry_after) {
  return {{"date", date}, {"retry-after", retry_after}};
}

} // namespace

TEST_CASE("trouble: names go to and fro", "[trouble]") {
  for (int i = 0; i <= static_cast<int>(kind::cancelled); ++i) {
    const auto k = static_cast<kind>(i);
    CHECK(model::trouble_kind_from(model::name_of(k)) == k);
  }
  CHECK_FALSE(model::trouble_kind_from("unknown"));
  CHECK(model::name_of(kind::quota) == "quota");
}

TEST_CASE("trouble: what providers say", "[trouble]") {
  const std::vector<said> all{
      // OpenAI
      {401,
       R"({"error":{"message":"Incorrect API key provided: sk-ab***. You can find yours at x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}})",
       kind::unauthorized},
      {429,
       R"({"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}})",
       kind::quota},
      {429,
       R"({"error":{"message":"x","type":"insufficient_quota","code":"project_spend_limit_exceeded"}})",
       kind::quota},
      {429,
       R"({"error":{"message":"Rate limit reached for m in organization org-1 on tokens per min (TPM): Limit 1, Used 1.","type":"tokens","code":"rate_limit_exceeded"}})",
       kind::rate_limited},
      {429,
       R"({"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000.","type":"tokens","code":"rate_limit_exceeded"}})",
       kind::too_long},
      {400,
       R"({"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}})",
       kind::quota},
      {400,
       R"({"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}})",
       kind::too_long},
      {404,
       R"({"error":{"message":"The model `x` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}})",
       kind::not_found},
      {400,
       R"({"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}})",
       kind::bad_request},
      {500,
       R"({"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}})",
       kind::unavailable},
      {503, R"({"error":{"message":"Slow down","type":"server_error","code":"slow_down"}})",
       kind::overloaded},
      // Azure
      {400,
       R"({"error":{"message":"The response was filtered due to the prompt triggering content management policy.","type":null,"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}})",
       kind::refused},
      // Anthropic
      {529,
       R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"})",
       kind::overloaded},
      {400,
       R"({"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}})",
       kind::quota},
      {400,
       R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}})",
       kind::too_long},
      {413,
       R"({"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}})",
       kind::too_long},
      {429, R"({"type":"error","error":{"type":"rate_limit_error","message":"x"}})",
       kind::rate_limited},
      {403, R"({"type":"error","error":{"type":"permission_error","message":"x"}})",
       kind::unauthorized},
      {404, R"({"type":"error","error":{"type":"not_found_error","message":"model: x"}})",
       kind::not_found},
      // Gemini
      {400,
       R"([{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}])",
       kind::unauthorized},
      {429,
       R"([{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}])",
       kind::rate_limited},
      {429,
       R"([{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}])",
       kind::quota},
      {503,
       R"([{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}])",
       kind::overloaded},
      {400,
       R"([{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}])",
       kind::too_long},
      {400,
       R"([{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}])",
       kind::bad_request},
      // OpenRouter
      {402, R"({"error":{"message":"Insufficient credits. Add more","code":402}})", kind::quota},
      {403,
       R"({"error":{"message":"Your input was flagged","code":403,"metadata":{"reasons":["x"]}}})",
       kind::refused},
      {400, R"({"error":{"message":"x/y is not a valid model ID","code":400}})", kind::not_found},
      {429,
       R"({"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream","provider_name":"P"}}})",
       kind::rate_limited},
      {502, R"({"error":{"message":"Provider returned error","code":502}})", kind::unavailable},
      {400,
       R"({"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"code\":\"context_length_exceeded\"}}"}}})",
       kind::too_long},
      // DeepSeek, Mistral, Groq, Moonshot
      {402,
       R"({"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}})",
       kind::quota},
      {422,
       R"({"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null})",
       kind::bad_request},
      {413,
       R"({"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}})",
       kind::too_long},
      {429,
       R"({"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}})",
       kind::overloaded},
      // Servers at home
      {404,
       R"({"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}})",
       kind::not_found},
      {503, R"({"error":"server busy, please try again.  maximum pending requests exceeded"})",
       kind::overloaded},
      {400,
       R"({"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400})",
       kind::too_long},
      {400,
       R"({"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}})",
       kind::too_long},
      {500,
       R"({"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})",
       kind::too_long},
      {503, R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
       kind::overloaded},
      {401, R"({"error":"Unauthorized"})", kind::unauthorized},
      {422,
       R"({"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error"}]})",
       kind::bad_request},
      // Pages, nothing, garbage
      {502, "<html><head><title>502 Bad Gateway</title></head></html>", kind::unavailable},
      {520, "", kind::unavailable},
      {403, "\xFF\xFE\x00garbage", kind::unauthorized},
      {408, "", kind::unavailable},
      {409, "", kind::unavailable},
      {301, "", kind::not_found},
      {405, "{", kind::not_found},
      {418, "[]", kind::bad_request},
      {500, std::string(100'000, '['), kind::unavailable},
  };
  for (const auto& s : all) {
    INFO(s.status << ' ' << s.body.substr(0, 300));
    const auto t = model::trouble_of_answer(head_of(s.status), s.body);
    CHECK(model::name_of(t.kind) == model::name_of(s.means));
    CHECK(t.status == s.status);
    CHECK_FALSE(t.what.empty());
    CHECK(t.what.find('\n') == std::string::npos);
    CHECK(t.what.size() <= 2000);
    // The same object inside a stream or a body that began with 200 means the same, but for words
    // that only the status says.
    if (s.means == kind::quota && s.status != 402)
      CHECK(model::trouble_of_object(s.body).kind == kind::quota);
  }
}

TEST_CASE("trouble: the provider's own word", "[trouble]") {
  const auto t = model::trouble_of_answer(
      head_of(429), R"({"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}})");
  CHECK(t.code == "rate_limit_exceeded");
  CHECK(t.what == "HTTP 429 rate_limit_exceeded: m");
  CHECK(model::trouble_of_answer(head_of(502), "<html><title>502 Bad\n Gateway</title>").what ==
        "HTTP 502: 502 Bad Gateway");
  CHECK(model::trouble_of_answer(head_of(307, {{"location", "https://b/v1"}}), "").what ==
        "HTTP 307: redirected to https://b/v1; set base_url to the right address");
  CHECK(
      model::trouble_of_answer(head_of(422), R"({"detail":[{"loc":["body","n",0],"msg":"wrong"}]})")
          .what == "HTTP 422: wrong body n 0");
}

TEST_CASE("trouble: keys do not get out", "[trouble]") {
  const std::vector<std::string> messages{
      "Incorrect API key provided: sk-proj-****************abcd. You can find your API key at x",
      "Incorrect API key provided: KEYKEY. You can find your API key at x",
      "invalid x-api-key sk-ant-api03-abcdefKEYKEY",
      "API key AIzaSyA1234567890abcdefKEYKEY not valid",
      "Authorization: Bearer KEYKEY is wrong",
      "token gsk_KEYKEY12345678 expired",
      "bad key 0123456789abcdef0123456789abcdefKEYKEY",
      "{\"key\":\"sk-or-v1-KEYKEY0123456789\"}",
      "jwt eyJhbGciOiJIUzI1NiJ9.KEYKEY.x"};
  for (const auto& m : messages) {
    const auto t = model::trouble_of_answer(
        head_of(401), json{{"error", {{"message", m}, {"code", "invalid_api_key"}}}}.dump());
    INFO(t.what);
    CHECK(t.what.find("KEYKEY") == std::string::npos);
    CHECK(t.what.find("abcd") == std::string::npos);
    CHECK(t.what.find("[redacted]") != std::string::npos);
    // Outside of JSON, too.
    CHECK(model::trouble_of_answer(head_of(401), m).what.find("KEYKEY") == std::string::npos);
    CHECK(model::trouble_of_transport(error{errc::io_error, m, "", ""}).what.find("KEYKEY") ==
          std::string::npos);
  }
  // What helps to ask the provider stays, and so do names of models.
  CHECK(model::trouble_of_answer(head_of(404),
                                 "no model deepseek-r1-distill-qwen-32b-instruct-fp8-2025")
            .what == "HTTP 404: no model deepseek-r1-distill-qwen-32b-instruct-fp8-2025");
  const auto t = model::trouble_of_answer(
      head_of(500),
      R"({"error":{"message":"oops, request ID req_011CZAZuCr9hV42toiCdnnKB0123456"}})");
  CHECK(t.what.find("req_011CZAZuCr9hV42toiCdnnKB0123456") != std::string::npos);
}

TEST_CASE("trouble: inside a stream that began with 200", "[trouble][answer]") {
  const std::string text = R"({"choices":[{"index":0,"delta":{"content":"half"}}]})";
  const std::vector<std::pair<std::string, kind>> all{
      // Anthropic's, as gateways pass it on.
      {"event: error\ndata: "
       "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}"
       "\n\n",
       kind::overloaded},
      {R"(data: {"error":{"type":"overloaded_error","message":"Overloaded"}})"
       "\n\n",
       kind::overloaded},
      // OpenRouter
      {R"(data: {"id":"g","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]})"
       "\n\n",
       kind::unavailable},
      {R"(data: {"error":{"code":"rate_limit_exceeded","message":"x"},"choices":[{"delta":{},"finish_reason":"error"}]})"
       "\n\n",
       kind::rate_limited},
      {R"(data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":503,"message":"x"}}]})"
       "\n\n",
       kind::overloaded},
      {R"(data: {"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]})"
       "\n\n",
       kind::overloaded},
      // Gemini
      {R"(data: [{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}])"
       "\n\n",
       kind::overloaded},
      // vLLM, old and new
      {R"(data: {"object":"error","message":"boom","type":"BadRequestError","param":null,"code":400})"
       "\n\n",
       kind::bad_request},
      {R"(data: {"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}})"
       "\n\n",
       kind::unavailable},
      // llama.cpp, Ollama
      {R"(data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}})"
       "\n\n",
       kind::too_long},
      {R"(data: {"error":"an error was encountered while running the model"})"
       "\n\n",
       kind::unavailable},
      {R"(data: {"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}})"
       "\n\n",
       kind::quota},
      {"event: error\ndata: upstream timed out\n\n", kind::unavailable},
  };
  for (const auto& [event, means] : all) {
    INFO(event);
    const auto before = "data: " + text + "\n\n";
    CHECK(model::name_of(trouble_of(before + event + "data: [DONE]\n\n").kind) ==
          model::name_of(means));
    CHECK(trouble_of(read_answer(head_of(200), before + event, 1)).kind == means);
  }
  // As one JSON text, whatever the type says.
  for (const std::string body :
       {R"({"error":{"type":"overloaded_error","message":"Overloaded"}})",
        R"([{"error":{"code":503,"message":"overloaded"}}])", R"({"error":"overloaded"})"})
    CHECK(trouble_of(body).kind == kind::overloaded);
  // Not an error.
  CHECK(
      answer_of(R"({"error":null,"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]})")
          .text == "x");
}

TEST_CASE("trouble: what may be sent again", "[trouble]") {
  for (const auto k : {kind::unavailable, kind::overloaded, kind::rate_limited, kind::bad_answer})
    CHECK(may_repeat(of(k)));
  for (const auto k : {kind::quota, kind::unauthorized, kind::not_found, kind::bad_request,
                       kind::too_long, kind::refused, kind::cancelled})
    CHECK_FALSE(may_repeat(of(k)));
  // The provider's own wish counts, but money stays money.
  CHECK(may_repeat(model::trouble_of_answer(head_of(400, {{"x-should-retry", "true"}}), "")));
  CHECK_FALSE(
      may_repeat(model::trouble_of_answer(head_of(500, {{"x-should-retry", "false"}}), "")));
  CHECK_FALSE(may_repeat(model::trouble_of_answer(head_of(429, {{"X-Should-Retry", "true"}}),
                                                  R"({"error":{"code":"insufficient_quota"}})")));
  CHECK(may_repeat(model::trouble_of_answer(head_of(500, {{"x-should-retry", "perhaps"}}), "")));
}

TEST_CASE("trouble: from the transport", "[trouble]") {
  const std::map<errc, kind> all{
      {errc::timed_out, kind::unavailable},     {errc::io_error, kind::unavailable},
      {errc::refused, kind::unauthorized},      {errc::invalid_argument, kind::bad_request},
      {errc::limit_exceeded, kind::bad_answer}, {errc::parse_error, kind::bad_answer},
      {errc::overloaded, kind::overloaded},     {errc::cancelled, kind::cancelled}};
  for (const auto& [code, means] : all) {
    const auto t = model::trouble_of_transport(error{code, "what", "where", ""});
    CHECK(t.kind == means);
    CHECK(t.what == "where: what");
    CHECK(t.status == 0);
  }
  CHECK_FALSE(may_repeat(model::trouble_of_transport(error{errc::limit_exceeded, "x", "", ""})));
}

TEST_CASE("trouble: failure classes", "[trouble]") {
  CHECK(model::class_of(kind::unavailable) == failure_class::transient);
  CHECK(model::class_of(kind::too_long) == failure_class::transient);
  CHECK(model::class_of(kind::quota) == failure_class::environment);
  CHECK(model::class_of(kind::unauthorized) == failure_class::environment);
  CHECK(model::class_of(kind::bad_request) == failure_class::deterministic);
  CHECK(model::class_of(kind::refused) == failure_class::deterministic);
}

TEST_CASE("retry: what the provider asks for", "[trouble][retry]") {
  const auto now = *parse_rfc3339("1994-11-06T08:49:37Z");
  const auto asked = [&](http_headers headers) { return model::retry_after_of(headers, now); };
  CHECK(asked({{"retry-after", "7"}}) == 7s);
  CHECK(asked({{"Retry-After", " 1.5 "}}) == 1500ms);
  CHECK(asked({{"retry-after", "9"}, {"retry-after-ms", "250"}}) == 250ms);
  CHECK(asked({{"retry-after", "9"}, {"retry-after-ms", "soon"}}) == 9s);
  // Three forms of a date (RFC 9110 §5.6.7).
  CHECK(asked({{"retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"}}) == 60s);
  CHECK(asked({{"retry-after", "Sunday, 06-Nov-94 08:50:37 GMT"}}) == 60s);
  CHECK(asked({{"retry-after", "Sun Nov  6 08:50:37 1994"}}) == 60s);
  for (const std::string none :
       {"0", "-1", "nan", "inf", "1e999", "soon", "", "0x10", "Sun, 06 Nov 1994 08:49:36 GMT",
        "Sun, 31 Feb 1994 08:50:37 GMT", "Sun, 06 Nov 1994 24:50:37 GMT", "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:50:37 CET", "1 2 3 4 5", "- - - - - -"}) {
    INFO(none);
    CHECK_FALSE(asked({{"retry-after", none}}));
  }
  CHECK_FALSE(asked({}));
  CHECK(asked({{"retry-after", "1e18"}}) == std::chrono::hours{8 * 24});
  CHECK(asked({{"retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"}}) == std::chrono::hours{8 * 24});
  CHECK(asked({{"retry-after", "1994-11-06T08:50:37Z"}}) == 60s);
  CHECK(asked({{"retry-after", "20s"}}) == 20s);
  CHECK(model::retry_after_of({{"retry-after", "1796083200"}},
                              *parse_rfc3339("2026-11-30T23:00:00Z")) == 1h);
}

TEST_CASE("field case 20: a provider names the time of its limit in words", "[trouble][retry]") {
  const auto told = [](const std::string& body, http_headers headers = {}) {
    headers.emplace_back("date", "Mon, 30 Nov 2026 23:00:00 GMT");
    return model::trouble_of_answer(head_of(429, std::move(headers)), body);
  };
  CHECK(told(R"({"error":{"message":"Rate limit reached for m. Please try again in 8.456s."}})")
            .retry_after == 8456ms);
  CHECK(
      told(R"({"error":{"type":"usage_limit_reached","message":"The usage limit has been reached",)"
           R"("resets_in_seconds":3600}})")
          .retry_after == 1h);
  const auto at =
      told(R"({"error":{"type":"usage_limit_reached","message":"The usage limit has been )"
           R"(reached","resets_at":1796083200}})");
  CHECK(at.retry_after == 1h);
  CHECK_THAT(at.what, Catch::Matchers::EndsWith("(resets 2026-12-01T00:00:00Z)"));
  CHECK(told("slow down", {{"x-ratelimit-reset", "1796083200"}}).retry_after == 1h);
  CHECK(told("slow down", {{"x-ratelimit-reset-after", "20"}}).retry_after == 20s);
  // A header comes before words.
  CHECK(told("try again in 20s", {{"retry-after", "7"}}).retry_after == 7s);
  CHECK_FALSE(told("slow down").retry_after);
  // What is wrong with the request does not pass.
  CHECK_FALSE(model::trouble_of_answer(head_of(400), "retry in 20s").retry_after);
  CHECK(model::trouble_of_object(R"({"message":"Rate limit reached, try again in 20s"})")
            .retry_after == 20s);
}

TEST_CASE("retry: an answer's date is read against its own clock", "[trouble][retry]") {
  const auto t = model::trouble_of_answer(
      head_of(503, date_is("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:47 GMT")), "");
  CHECK(t.retry_after == 10s);
  CHECK_FALSE(
      model::trouble_of_answer(head_of(503, {{"retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"}}), "")
          .retry_after);
  // Gemini says it in the body.
  const auto gemini = model::trouble_of_answer(
      head_of(429),
      R"([{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}])");
  CHECK(gemini.retry_after == 34'500ms);
}

TEST_CASE("case 54 llm-429-500-storm: waits grow with jitter and honour Retry-After",
          "[trouble][retry][fault]") {
  trouble plain;
  CHECK(model::wait_before_repeat(plain, 0, 0) == 500ms);
  CHECK(model::wait_before_repeat(plain, 1, 0) == 1s);
  CHECK(model::wait_before_repeat(plain, 4, 0) == 8s);
  CHECK(model::wait_before_repeat(plain, 1000, 0) == 8s);
  CHECK(model::wait_before_repeat(plain, 0, 1) == 375ms);
  CHECK(model::wait_before_repeat(with_wait(7s), 3, 0.5) == 7s);
  CHECK(model::wait_before_repeat(with_wait(120s), 0, 0.5) == 120s);
  CHECK_FALSE(model::wait_before_repeat(with_wait(120s + 1ms), 0, 0.5));
  CHECK(rc::check("within bounds", [](int repeat, std::uint32_t raw) {
    const double unit = static_cast<double>(raw) / 4'294'967'296.0;
    const auto wait = model::wait_before_repeat(trouble{}, repeat, unit);
    RC_ASSERT(wait.has_value());
    RC_ASSERT(*wait >= 375ms);
    RC_ASSERT(*wait <= 8s);
  }));
}

TEST_CASE("case 53 llm-garbage, deep-json, huge, wrong-charset: a bad answer with its reason",
          "[answer][fault]") {
  const auto reason = [](const std::string& body) {
    const auto t = trouble_of(body);
    CHECK(model::name_of(t.kind) == "bad_answer");
    CHECK(model::class_of(t.kind) == failure_class::transient);
    CHECK(trouble_of(read_answer(head_of(200), body, 7)).what == t.what);
    return t.what;
  };
  SECTION("garbage") {
    CHECK(reason("data: not json\n\n") == "an event of the stream: not valid JSON");
    CHECK(reason("{\"choices\": [") == "the answer: incomplete JSON");
    CHECK(reason("just words") == "the stream ended before an answer");
    CHECK(reason("<!DOCTYPE html><title>LM Studio</title>") ==
          "the answer is an HTML page, not JSON; check base_url");
    CHECK(reason("data: {\"choices\":7}\n\ndata: [DONE]\n\n") == "a stream without an answer");
    CHECK(reason("data: {\"choices\":[{\"delta\":[]}]}\n\n") == "the stream ended early");
    CHECK(reason("data: 1\n\ndata: \"x\"\n\ndata: null\n\n") ==
          "the stream ended before an answer");
  }
  SECTION("deep JSON, in a stream, in a body, and in a delta that grows") {
    const std::string deep = R"({"choices":)" + std::string(100'000, '[');
    CHECK(reason("data: " + deep + "\n\n") ==
          "an event of the stream: JSON is nested deeper than 64");
    CHECK(reason(deep) == "the answer: JSON is nested deeper than 64");
  }
  SECTION("huge") {
    model::answer_reader reader(1000);
    reader.on_head(head_of(200));
    for (int i = 0; i < 100; ++i)
      reader.on_body("data: {\"choices\":[{\"delta\":{\"content\":\"xxxxxxxxxx\"}}]}\n\n");
    const auto t = trouble_of(reader.finish({}));
    CHECK(t.what == "the answer is larger than 1000 bytes");
    CHECK_FALSE(may_repeat(t));
    // One event, and a great many calls.
    CHECK(reason("data: " + std::string(9u << 20, 'x')) == "an event is larger than 8388608 bytes");
    std::string calls;
    for (int i = 0; i < 300; ++i)
      calls += R"(data: {"choices":[{"delta":{"tool_calls":[{"index":)" + std::to_string(i) +
               R"(,"function":{"name":"x"}}]}}]})"
               "\n\n";
    CHECK(reason(calls) == "more tool calls than 256");
    // A large error is cut, not kept.
    CHECK(model::trouble_of_answer(head_of(500), std::string(10u << 20, 'x')).what.size() < 600);
  }
  SECTION("a wrong character set") {
    CHECK(answer_of("{\"choices\":[{\"message\":{\"content\":\"caf\xE9\"}}]}").text == "caf\uFFFD");
    std::string wide = "\xFF\xFE";
    for (const char c : std::string("{\"choices\":[]}"))
      wide += {c, '\0'};
    CHECK(reason(wide) == "the stream ended before an answer");
  }
}

} // namespace boyd::trouble_test
