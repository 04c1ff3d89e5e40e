#include "integration/http_client/fixture.hpp"
#include "support/pch.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace boyd::cancel_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// A port whose backlog is full: who connects waits, neither accepted nor refused.
class full_port {
 public:
  full_port() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at_;
    REQUIRE(::bind(listening_, address(), size) == 0);
    REQUIRE(::listen(listening_, 0) == 0);
    REQUIRE(::getsockname(listening_, address(), &size) == 0);
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      (void)::connect(fillers_.back(), address(), size);
    }
  }
  ~full_port() {
    for (const int fd : fillers_)
      ::close(fd);
    ::close(listening_);
  }
  full_port(const full_port&) = delete;
  full_port& operator=(const full_port&) = delete;

  std::string origin() const { return "http://127.0.0.1:" + std::to_string(ntohs(at_.sin_port)); }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&at_); }

  sockaddr_in at_{};
  int listening_;
  std::vector<int> fillers_;
};

void check_cancelled(watched& w) {
  const auto r = w.wait();
  REQUIRE_FALSE(r);
  CHECK(r.error().code == errc::cancelled);
  const auto order = w.order();
  CHECK(order.find('e') == order.size() - 1);
}

} // namespace

TEST_CASE("http client: cancelled at once, while it connects, before the head, in the body",
          "[http_client]") {
  const auto never = make_gate();
  const full_port full;
  model_endpoint endpoint;
  model_answer silent;
  silent.before_head = never;
  const auto client = adapters::make_http_client();

  watched at_once;
  client->cancel(client->start(post(full.origin()), at_once.events()));
  check_cancelled(at_once);

  watched connecting;
  const auto h = client->start(post(full.origin()), connecting.events());
  CHECK(call(*client, get(endpoint.base_url() + "/models")).end); // the first is on its way by now
  client->cancel(h);
  client->cancel(h);
  check_cancelled(connecting);

  endpoint.then(silent).then(chat_stream().role().wait(never).done());
  watched waiting;
  const auto w = client->start(post(endpoint.origin()), waiting.events());
  REQUIRE(never->wait_for_arrivals(1));
  client->cancel(w);
  check_cancelled(waiting);
  CHECK(waiting.order() == "e");

  watched streaming;
  const auto s = client->start(post(endpoint.origin()), streaming.events());
  REQUIRE(streaming.wait_for_bytes(1));
  client->cancel(s);
  check_cancelled(streaming);
  CHECK(endpoint.wait_for_open_connections(0)); // the endpoint sees it
  CHECK(client->running() == 0);
}

TEST_CASE("http client: cancelled while a large body is being sent", "[http_client]") {
  const full_port full; // accepts in the kernel's place nothing beyond its buffers
  const auto never = make_gate();
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client();
  watched w;
  const auto h = client->start(post(full.origin(), std::string(32u << 20, 'x')), w.events());
  CHECK(call(*client, get(endpoint.origin())).end);
  client->cancel(h);
  check_cancelled(w);
}

TEST_CASE("http client: cancelling what has ended, or never was, is ignored", "[http_client]") {
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client();
  client->cancel(0);
  client->cancel(77);
  watched w;
  const auto h = client->start(post(endpoint.origin()), w.events());
  CHECK(w.wait());
  client->cancel(h);
  CHECK(call(*client, post(endpoint.origin())).end);
  CHECK(w.order() == "hbe");
}

TEST_CASE("http client: its end cancels what is under way", "[http_client]") {
  const auto never = make_gate();
  model_endpoint endpoint([&](const model_request&) {
    model_answer a;
    a.before_head = never;
    return a;
  });
  const auto threads = threads_of_process();
  std::vector<watched> all(50);
  {
    const auto client = adapters::make_http_client();
    for (auto& w : all)
      client->start(post(endpoint.origin()), w.events());
    REQUIRE(never->wait_for_arrivals(all.size()));
    CHECK(client->running() == all.size());
  }
  for (auto& w : all) {
    CHECK(w.ended()); // when the destructor is through, not later
    check_cancelled(w);
  }
  CHECK(threads_of_process() == threads);
}

TEST_CASE("http client: callbacks may start and cancel", "[http_client]") {
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client({.most_requests = 1, .ca_file = {}});
  watched second;
  event_latch first_ended;
  http_events first;
  first.on_head = [&](const http_head&) { client->cancel(77); };
  first.on_end = [&](const result<void>&) {
    // There is room for one, and the first does not count any more.
    client->start(post(endpoint.origin()), second.events());
    first_ended.signal();
  };
  client->start(post(endpoint.origin()), first);
  REQUIRE(first_ended.wait());
  CHECK(second.wait());
}

TEST_CASE("http client: no callbacks at all", "[http_client]") {
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client();
  client->start(post(endpoint.origin()), {});
  client->start(get("no address"), {});
  REQUIRE(endpoint.wait_for_requests(1));
  CHECK(wait_until([&] { return client->running() == 0; }));
}

} // namespace boyd::cancel_test
