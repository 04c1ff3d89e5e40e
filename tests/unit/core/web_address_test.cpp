#include "boyd/core/web_address.hpp"
#include "support/pch.hpp"

#include <string>

namespace boyd::web_address_test {

using namespace boyd;

TEST_CASE("web addresses: what can be called", "[web]") {
  const auto plain = parse_web_address("http://monitor.example.org");
  REQUIRE(plain);
  CHECK_FALSE(plain->secure);
  CHECK(plain->host == "monitor.example.org");
  CHECK(plain->port == "80");
  CHECK(plain->target == "/");
  const auto full = parse_web_address("https://[::1]:8443/beat/secret?x=1");
  REQUIRE(full);
  CHECK(full->secure);
  CHECK(full->host == "::1");
  CHECK(full->port == "8443");
  CHECK(full->target == "/beat/secret?x=1");
  CHECK(full->origin() == "https://[::1]:8443"); // not the path: it may be a secret
  CHECK(parse_web_address("http://a?b")->target == "/?b");
}

TEST_CASE("web addresses: what is refused", "[web]") {
  for (const auto* text :
       {"", "ftp://a/", "file:///etc/passwd", "monitor.example.org", "http://", "http:///path",
        "http://a:0/", "http://a:65536/", "http://a:80x/", "http://a:/", "http://me:word@a/",
        "http://a/\r\nHost: b", "http://a/ b", "http://a/#part", "http://[::1/", "HTTP://a/"}) {
    INFO(text);
    const auto address = parse_web_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == errc::invalid_argument);
    CHECK_FALSE(address.error().next.empty());
  }
}

TEST_CASE("web address: hosts that are this machine", "[web]") {
  for (const auto* host : {"localhost", "a.localhost", "127.0.0.1", "127.255.0.9", "::1"}) {
    INFO(host);
    CHECK(is_loopback_host(host));
  }
  for (const auto* host :
       {"", "127.", "127.0.0", "127.0.0.1.example.org", "127.0.0.256", "127.1.1.x", "128.0.0.1",
        "mylocalhost", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1."}) {
    INFO(host);
    CHECK_FALSE(is_loopback_host(host));
  }
}

} // namespace boyd::web_address_test
