#include "integration/control/fixture.hpp"
#include "src/adapters/control/http_text_internal.hpp"

#include <sys/stat.h>

namespace boyd::requests_test {

using namespace boyd;
using namespace boyd::test;

namespace {

constexpr auto close_header = "Connection: close\r\n";

bool begins(const std::string& text, std::string_view status) {
  return text.starts_with("HTTP/1.1 " + std::string(status));
}

} // namespace

TEST_CASE("a request comes through with its parts decoded", "[http]") {
  served node;
  const http_request request{
      "POST", "/api/v1/state \xc3\xa9", {{"kernel", "a b&c=d+%"}, {"at", ""}}, "{\"x\":1}"};
  const auto answer = adapters::control_call(node.path(), request, patience);
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->content_type == "text/plain");
  CHECK(answer->body == "POST /api/v1/state \xc3\xa9?at=?kernel=a b&c=d+% bytes=7");
}

TEST_CASE("a connection is kept, and pipelined requests are answered in order", "[http]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send(get("/1")));
  CHECK(client.read_until("GET /1 bytes=0").find("Connection: keep-alive") != std::string::npos);
  REQUIRE(client.send(get("/2") + get("/3") + get("/4", close_header)));
  const auto all = client.read_all();
  CHECK(count_of(all, "HTTP/1.1 200") == 4);
  CHECK(all.find("GET /2 ") < all.find("GET /3 "));
  CHECK(all.find("GET /3 ") < all.find("GET /4 "));
  CHECK(all.ends_with("GET /4 bytes=0"));
}

TEST_CASE("HTTP/1.0, HEAD and a half-closed client get answers", "[http]") {
  served node;
  raw_client old(node.path());
  REQUIRE(old.send("GET /old HTTP/1.0\r\n\r\n"));
  CHECK(old.read_all().ends_with("GET /old bytes=0"));
  raw_client head(node.path());
  REQUIRE(head.send("HEAD /h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  CHECK(head.read_all().ends_with("\r\n\r\n"));
  raw_client half(node.path());
  REQUIRE(half.send(get("/hold", close_header)));
  half.end_of_sending();
  node.held(1)({200, "text/plain", "late"});
  CHECK(half.read_all().ends_with("late"));
}

TEST_CASE("a body may have exactly the cap", "[http][caps]") {
  served node;
  const auto with_body = [&](std::size_t bytes) {
    return adapters::control_call(node.path(), {"POST", "/b", {}, std::string(bytes, 'x')},
                                  patience);
  };
  const auto full = with_body(limits::http_body_bytes);
  REQUIRE(full);
  CHECK(full->body == "POST /b bytes=1048576");
  const auto over = with_body(limits::http_body_bytes + 1);
  REQUIRE(over);
  CHECK(over->status == 413);
  CHECK(adapters::error_of(*over).code == errc::limit_exceeded);
  const auto far_over = with_body(64 * limits::http_body_bytes);
  REQUIRE(far_over);
  CHECK(far_over->status == 413);
  CHECK(node.is_well());
}

TEST_CASE("100-continue is honoured", "[http]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                      "Content-Length: 3\r\nConnection: close\r\n\r\n"));
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  REQUIRE(client.send("abc"));
  CHECK(client.read_all().ends_with("POST /e bytes=3"));
}

TEST_CASE("chunked bodies are decoded, and their caps hold", "[http][caps]") {
  served node;
  const std::string head = "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  SECTION("a good one") {
    raw_client client(node.path());
    REQUIRE(client.send(head + "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: y\r\n\r\n"));
    CHECK(client.read_until("bytes=").find("POST /c bytes=5") != std::string::npos);
    REQUIRE(client.send(get("/after", close_header)));
    CHECK(client.read_all().ends_with("GET /after bytes=0"));
  }
  SECTION("endless") {
    raw_client client(node.path());
    REQUIRE(client.send(head));
    const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
    // Far more than the server reads after its refusal: it must hang up.
    bool open = true;
    for (int i = 0; i < 200'000 && open; ++i)
      open = client.send(chunk);
    CHECK_FALSE(open);
    CHECK(begins(client.read_all(), "413"));
  }
  SECTION("broken sizes") {
    for (const std::string bad :
         {"-1\r\nx\r\n", "fffffffffffffffff\r\n", "ffffffffffffffff\r\n", "7fffffffffffffff\r\n",
          "0x3\r\nabc\r\n\r\n", "\r\n", "g\r\n", "3\r\nabcd\r\n0\r\n\r\n"}) {
      CAPTURE(bad);
      raw_client client(node.path());
      REQUIRE(client.send(head + bad));
      const auto answer = client.read_all();
      const bool refused = begins(answer, "400") || begins(answer, "413");
      CHECK(refused);
    }
  }
  SECTION("an endless chunk line") {
    raw_client client(node.path());
    client.send(head + "1;" + std::string(200'000, 'e'));
    const auto answer = client.read_all();
    const bool refused = begins(answer, "400") || begins(answer, "431");
    CHECK(refused);
  }
  CHECK(node.is_well());
}

TEST_CASE("heads are bounded", "[http][caps]") {
  served node;
  const auto headers = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += "H" + std::to_string(i) + ": v\r\n";
    return text;
  };
  const auto status_of = [&](const std::string& request) {
    raw_client client(node.path());
    client.send(request);
    return client.read_all().substr(9, 3);
  };
  // Host and Connection are two more.
  CHECK(status_of(get("/", headers(limits::http_headers - 2) + close_header)) == "200");
  CHECK(status_of(get("/", headers(limits::http_headers - 1) + close_header)) == "431");
  CHECK(status_of(get("/", headers(200'000))) == "431");
  CHECK(status_of(get("/", "A: " + std::string(15'000, 'a') + "\r\n" + close_header)) == "200");
  CHECK(status_of(get("/", "A: " + std::string(17'000, 'a') + "\r\n")) == "431");
  CHECK(status_of(get("/" + std::string(17'000, 'p'))) == "431");
  CHECK(status_of(get("/" + std::string(9'000, 'p'), "A: " + std::string(9'000, 'a') + "\r\n")) ==
        "431");
  CHECK(status_of("GET /" + std::string(500'000, 'p')) == "431");
  CHECK(node.is_well());
}

TEST_CASE("hostile and ambiguous heads are refused", "[http]") {
  served node;
  const std::string post = "POST /s HTTP/1.1\r\nHost: x\r\n";
  for (const auto& request : std::vector<std::string>{
           post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
           post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
           post + "Content-Length: -3\r\n\r\n",
           post + "Content-Length: 99999999999999999999999\r\n\r\n",
           post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
           post + "Host: y\r\n\r\n",
           "POST /s HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "GET / HTTP/2.0\r\n\r\n",
           "GET / HTTP/0.9\r\n\r\n",
           "GET /\r\n\r\n",
           "\x16\x03\x01\x02 hello\r\n\r\n",
           get("http://elsewhere/"),
           get("*"),
           get("/a/../b"),
           get("/a/%2e%2E/b"),
           get("/a%2f..%2fb"),
           get("/./a"),
           get("/a%00b"),
           get("/a%0ab"),
           get("/a%"),
           get("/a%4"),
           get("/a%+1"),
           get("/a%zz"),
           get("/a%ff"),
           get("/a#b"),
           get("/?x=%00"),
           get("/?x=1&x=2"),
       }) {
    CAPTURE(request);
    raw_client client(node.path());
    REQUIRE(client.send(request));
    const auto answer = client.read_all();
    const bool refused = begins(answer, "400") || begins(answer, "501") || begins(answer, "413");
    CHECK(refused);
    CHECK(answer.find("boyd.error/1") != std::string::npos);
  }
  CHECK(node.is_well());
}

TEST_CASE("a method override is not looked at", "[http]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send(get("/m", "X-HTTP-Method-Override: DELETE\r\nConnection: close\r\n")));
  CHECK(client.read_all().ends_with("GET /m bytes=0"));
}

TEST_CASE("an answer of 405 names the methods that are allowed", "[http]") {
  using adapters::control_detail::after_answer;
  adapters::http_response response;
  response.status = 405;
  response.allow = "GET, POST";
  const auto text = adapters::control_detail::write_answer(response, after_answer::keep, false);
  CHECK(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
  CHECK(text.find("\r\nAllow: GET, POST\r\n") != std::string::npos);
  response.allow = "GET\r\nX: y";
  CHECK(adapters::control_detail::write_answer(response, after_answer::keep, false).find("X: y") ==
        std::string::npos);
}

TEST_CASE("errors travel as the contract's JSON", "[http]") {
  const error sent{errc::stale_fence, "a \"quoted\" thing\xff", "where:1", "do that"};
  const auto response = adapters::error_response(sent);
  CHECK(response.status == 409);
  const auto got = adapters::error_of(response);
  CHECK(got.code == errc::stale_fence);
  CHECK(got.what == "a \"quoted\" thing\xef\xbf\xbd");
  CHECK(got.where == sent.where);
  CHECK(got.next == sent.next);
  CHECK(adapters::error_of({404, "text/html", "<html>"}).code == errc::not_found);
  CHECK(adapters::error_of({503, "", std::string(100'000, '[')}).code == errc::actor_down);
}

} // namespace boyd::requests_test
