#include "integration/http_client/fixture.hpp"
#include "support/pch.hpp"

namespace boyd::answers_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::string header_of(const http_head& head, const std::string& name) {
  for (const auto& [n, value] : head.headers)
    if (n == name)
      return value;
  return "";
}

} // namespace

TEST_CASE("http client: the request arrives as it was given, the answer as it was sent",
          "[http_client]") {
  model_endpoint endpoint;
  endpoint.then(text_answer("hello").header("X-Twice", "1").header("X-Twice", "2"));
  const auto client = adapters::make_http_client();
  const auto a = call(*client, post(endpoint.base_url() + "/chat/completions?a=b&c=%20d"));
  REQUIRE(a.end);
  CHECK(a.order == "hbe");
  CHECK(a.head.status == 200);
  CHECK(header_of(a.head, "content-type") == "application/json");
  CHECK(std::count(a.head.headers.begin(), a.head.headers.end(),
                   std::pair<std::string, std::string>("x-twice", "2")) == 1);
  CHECK(nlohmann::json::parse(a.body)["choices"][0]["message"]["content"] == "hello");

  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].method == "POST");
  CHECK(asked[0].path == "/v1/chat/completions?a=b&c=%20d");
  CHECK(asked[0].json["model"] == "test-model");
  CHECK(asked[0].header("authorization") == "Bearer sk-test-secret");
  CHECK(asked[0].header("content-type") == "application/json");
  CHECK(asked[0].header("accept-encoding") == "gzip");
  CHECK(asked[0].header("user-agent") == "boyd");
  CHECK(asked[0].header("expect").empty());
  CHECK(asked[0].header("cookie").empty());
  CHECK(client->running() == 0);
}

TEST_CASE("http client: methods, empty values and bodies of any size", "[http_client]") {
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client();
  auto plain = get(endpoint.base_url() + "/models");
  plain.headers = {{"X-Empty", ""}, {"User-Agent", "other"}};
  CHECK(call(*client, plain).end);
  auto removed = get(endpoint.origin() + "/session");
  removed.method = "DELETE";
  CHECK(call(*client, removed).end);
  for (const std::size_t size : {0u, 1u, 70'000u, 3'000'000u})
    CHECK(call(*client, post(endpoint.base_url(), std::string(size, 'x'))).end);

  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 6);
  CHECK(asked[0].method == "GET");
  CHECK(asked[0].header("user-agent") == "other");
  CHECK(std::count(asked[0].headers.begin(), asked[0].headers.end(),
                   std::pair<std::string, std::string>("x-empty", "")) == 1);
  CHECK(asked[0].header("content-type").empty());
  CHECK(asked[1].method == "DELETE");
  CHECK(asked[1].body.empty());
  for (std::size_t i = 2; i < 6; ++i)
    CHECK(asked[i].method == "POST");
  CHECK(asked[2].header("content-length") == "0");
  CHECK(asked[4].body == std::string(70'000, 'x'));
  CHECK(asked[5].body.size() == 3'000'000);
  CHECK(endpoint.connections_made() == 1); // one after the other on a kept connection
}

TEST_CASE("http client: a stream comes piece by piece", "[http_client]") {
  const auto gate = make_gate();
  model_endpoint endpoint;
  endpoint.then(chat_stream().role().wait(gate).text("Grüße, Welt", 3).finish().done());
  const auto client = adapters::make_http_client();
  watched w;
  client->start(post(endpoint.base_url()), w.events());
  REQUIRE(w.wait_for_bytes(10));
  CHECK(w.head().status == 200);
  CHECK_FALSE(w.ended());
  CHECK(client->running() == 1);
  gate->open();
  CHECK(w.wait());
  CHECK(w.body().ends_with("data: [DONE]\n\n"));
  CHECK(client->running() == 0);
}

TEST_CASE("http client: a status is an answer, and redirections are not followed",
          "[http_client]") {
  model_endpoint endpoint;
  endpoint.then(rate_limited_ms(250)).then(quota_exceeded()).then(server_failure());
  endpoint.then(model_answer{307, {{"location", "/elsewhere"}}, {}, {}, {}});
  const auto client = adapters::make_http_client();
  const auto first = call(*client, post(endpoint.base_url()));
  REQUIRE(first.end);
  CHECK(first.head.status == 429);
  CHECK(header_of(first.head, "retry-after-ms") == "250");
  CHECK(call(*client, post(endpoint.base_url())).head.status == 429);
  CHECK(call(*client, post(endpoint.base_url())).head.status == 500);
  const auto moved = call(*client, post(endpoint.base_url()));
  REQUIRE(moved.end);
  CHECK(moved.head.status == 307);
  CHECK(moved.order == "he");
  CHECK(endpoint.requests_count() == 4);
}

TEST_CASE("http client: interim answers are not told, cookies are not kept", "[http_client]") {
  model_endpoint endpoint;
  model_answer early;
  early.end = framing::raw;
  // It says that the connection ends: a request on one that is about to end fails, and is not sent
  // again, for nobody knows whether it was acted on.
  early.send("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
             "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nconnection: close\r\n"
             "content-length: 2\r\n\r\nok");
  endpoint.then(early).then(text_answer("second"));
  const auto client = adapters::make_http_client();
  const auto a = call(*client, post(endpoint.base_url()));
  REQUIRE(a.end);
  CHECK(a.order == "hbe");
  CHECK(a.head.status == 200);
  CHECK(header_of(a.head, "link").empty());
  CHECK(a.body == "ok");
  const auto again = call(*client, post(endpoint.base_url()));
  INFO((again.end ? std::string() : to_string(again.end.error())));
  REQUIRE(again.end);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].header("cookie").empty());
}

TEST_CASE("http client: trailers are no head", "[http_client]") {
  model_endpoint endpoint;
  model_answer a;
  a.end = framing::raw;
  a.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n"
         "2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n");
  endpoint.then(a);
  const auto client = adapters::make_http_client();
  const auto got = call(*client, post(endpoint.base_url()));
  REQUIRE(got.end);
  CHECK(got.order == "hbe");
  CHECK(header_of(got.head, "x-late").empty());
}

TEST_CASE("http client: packed answers come unpacked", "[http_client]") {
  const std::string text(200'000, 'a');
  model_endpoint endpoint;
  endpoint.then(gzipped(text));
  const auto client = adapters::make_http_client();
  const auto a = call(*client, post(endpoint.base_url()));
  REQUIRE(a.end);
  CHECK(a.body == text);
}

} // namespace boyd::answers_test
