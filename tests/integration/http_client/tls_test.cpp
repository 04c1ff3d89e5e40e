#include "integration/http_client/fixture.hpp"
#include "integration/http_client/tls_server.hpp"
#include "support/pch.hpp"

namespace boyd::tls_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::shared_ptr<http_client> trusting(const tls_server& server) {
  adapters::http_client_options o;
  o.ca_file = server.certificate_file();
  return adapters::make_http_client(o);
}

} // namespace

TEST_CASE("http client: a certificate that does not hold is refused", "[http_client]") {
  const tls_server server;
  SECTION("nobody has signed it") {
    const auto client = adapters::make_http_client();
    const auto a = call(*client, get(server.origin()));
    REQUIRE_FALSE(a.end);
    INFO(to_string(a.end.error()));
    CHECK(a.end.error().code == errc::refused);
    CHECK(a.end.error().where == server.origin());
  }
  SECTION("it is for another host") {
    const auto client = trusting(server);
    const auto a = call(*client, get(server.origin("other.localhost")));
    REQUIRE_FALSE(a.end);
    CHECK(a.end.error().code == errc::refused);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("http client: where nobody answers in TLS", "[http_client]") {
  const model_endpoint endpoint; // waits for the end of what it takes for a head
  const auto client = adapters::make_http_client();
  auto r = get("https" + endpoint.origin().substr(4));
  r.connect_timeout = 300ms;
  const auto a = call(*client, r);
  REQUIRE_FALSE(a.end);
  CHECK(a.end.error().code == errc::timed_out);
}

TEST_CASE("http client: HTTP/1.1 over TLS, on a kept connection", "[http_client]") {
  const tls_server server;
  const auto client = trusting(server);
  for (int i = 0; i < 3; ++i) {
    const auto a = call(*client, get(server.origin()));
    REQUIRE(a.end);
    CHECK(a.body == "ok");
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("http client: HTTP/2: many requests that begin together share one connection",
          "[http_client]") {
  constexpr std::size_t n = 60;
  const tls_server server(n); // answers when all of them are open
  const auto client = trusting(server);
  for (int round = 0; round < 3; ++round) {
    std::vector<watched> all(n);
    for (auto& w : all)
      client->start(post(server.origin() + "/v1"), w.events());
    for (auto& w : all) {
      const auto r = w.wait();
      INFO((r ? "" : to_string(r.error())));
      REQUIRE(r);
      CHECK(w.head().status == 200);
      CHECK(w.body() == "ok");
      CHECK(w.order() == "hbe");
    }
  }
  CHECK(server.connections() == 1);
  CHECK(server.requests() == 3 * n);
}

TEST_CASE("http client: HTTP/2: one request is cancelled, the others go on", "[http_client]") {
  const tls_server server(2);
  const auto client = trusting(server);
  watched first;
  const auto h = client->start(post(server.origin()), first.events());
  REQUIRE(wait_until([&] { return server.requests() == 1; }));
  client->cancel(h);
  CHECK(first.wait().error().code == errc::cancelled);
  CHECK(call(*client, post(server.origin())).end);
  CHECK(server.connections() == 1);
}

} // namespace boyd::tls_test
