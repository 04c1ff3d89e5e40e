#include "boyd/core/time.hpp"
#include "src/adapters/http/web_caller.hpp"
#include "support/loopback_server.hpp"
#include "support/pch.hpp"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::web_caller_test {

using namespace boyd;
using boyd::test::loopback_server;

namespace {

constexpr const char* good = "HTTP/1.1 204 No Content\r\n\r\n";

std::future<result<void>> begin(web_caller& web, const std::string& url, milliseconds limit) {
  auto told = std::make_shared<std::promise<result<void>>>();
  auto answer = told->get_future();
  web.get(url, limit, [told](const result<void>& r) { told->set_value(r); });
  return answer;
}

result<void> call(web_caller& web, const std::string& url, milliseconds limit = 10s) {
  return begin(web, url, limit).get();
}

} // namespace

TEST_CASE("web caller: a good answer is success, and the request is what was asked for", "[web]") {
  const loopback_server server(good);
  const auto web = adapters::make_web_caller();
  CHECK(call(*web, server.address() + "/beat/daily?a=b"));
  const auto asked = server.requests();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].starts_with("GET /beat/daily?a=b HTTP/1.1\r\n"));
  CHECK(asked[0].find("Host: " + server.address().substr(7) + "\r\n") != std::string::npos);
}

TEST_CASE("web caller: other answers are errors that name the host and not the path", "[web]") {
  const auto web = adapters::make_web_caller();
  for (const auto* answer :
       {"HTTP/1.1 500 Oops\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n",
        "this is no HTTP\r\n\r\n"}) {
    const loopback_server server(answer);
    const auto r = call(*web, server.address() + "/secret");
    REQUIRE_FALSE(r);
    INFO(to_string(r.error()));
    CHECK(r.error().where == server.address());
    CHECK(to_string(r.error()).find("secret") == std::string::npos);
    CHECK(server.requests().size() == 1); // nothing is repeated or followed
  }
}

TEST_CASE("web caller: an answer without an end is not read", "[web]") {
  const loopback_server server("HTTP/1.1 200 OK\r\nX: " + std::string(1u << 20, 'x'));
  const auto web = adapters::make_web_caller();
  CHECK_FALSE(call(*web, server.address()));
}

TEST_CASE("web caller: nobody there, no answer, no TLS, no address", "[web]") {
  const auto web = adapters::make_web_caller();
  std::string gone;
  {
    const loopback_server server(good);
    gone = server.address();
  }
  CHECK(call(*web, gone).error().code == errc::io_error);
  const loopback_server silent("");
  CHECK(call(*web, silent.address(), 200ms).error().code == errc::timed_out);
  const loopback_server server(good);
  CHECK(call(*web, server.address("https")).error().code == errc::refused);
  CHECK(call(*web, "file:///etc/passwd").error().code == errc::invalid_argument);
}

TEST_CASE("web caller: calls are bounded, and the caller's end does not wait for them", "[web]") {
  const loopback_server silent("");
  std::vector<std::future<result<void>>> waiting;
  {
    const auto web = adapters::make_web_caller();
    for (int i = 0; i < 4; ++i)
      waiting.push_back(begin(*web, silent.address(), 1h));
    CHECK(call(*web, silent.address()).error().code == errc::overloaded);
  }
  for (auto& w : waiting)
    CHECK(w.get().error().code == errc::cancelled);
}

} // namespace boyd::web_caller_test
