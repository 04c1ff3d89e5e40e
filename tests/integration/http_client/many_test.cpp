#include "integration/http_client/fixture.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace boyd::many_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// How many requests wait together; BOYD_HTTP_WAITING takes more. Each needs two descriptors here,
/// where the endpoint is in the same process.
std::size_t waiting_requests() {
  const auto n = static_cast<std::size_t>(test::knob("BOYD_HTTP_WAITING", 2000));
  const auto most = (raise_descriptor_limit() - 100) / 2;
  if (most < n)
    WARN("only " << most << " requests: the limit of open files allows no more");
  return std::min(n, most);
}

/// Takes descriptors until few are left.
class scarce_descriptors {
 public:
  explicit scarce_descriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (;;) {
      const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (fd < 0)
        break;
      taken_.push_back(fd);
    }
  }
  ~scarce_descriptors() {
    for (const int fd : taken_)
      ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  scarce_descriptors(const scarce_descriptors&) = delete;
  scarce_descriptors& operator=(const scarce_descriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

} // namespace

TEST_CASE("http client: thousands wait at once, on one thread", "[http_client]") {
  const auto n = waiting_requests();
  const auto gate = make_gate();
  model_endpoint endpoint([&](const model_request&) {
    auto a = stream_answer("done", 2);
    a.before_head = gate;
    return a;
  });
  endpoint.keep_no_requests();
  const auto before = threads_of_process();
  const auto memory = memory_of_process("VmRSS");
  const auto client = adapters::make_http_client();
  std::vector<watched> all(n);
  for (auto& w : all) {
    w.keep_no_body();
    client->start(post(endpoint.base_url() + "/chat/completions"), w.events());
  }
  REQUIRE(gate->wait_for_arrivals(n));
  CHECK(client->running() == n);
  CHECK(threads_of_process() == before + 1);
  INFO(n << " requests, both ends of them: " << memory_of_process("VmRSS") - memory << " KiB");
  // 10,000 calls must stay well below 300 MB; the endpoint's half is in this figure.
  constexpr std::size_t most_kib_each = 40;
  if (!sanitized())
    CHECK(memory_of_process("VmRSS") - memory < n * most_kib_each + 16u * 1024);
  gate->open();
  std::size_t good = 0;
  for (auto& w : all)
    good += w.wait() ? 1 : 0;
  CHECK(good == n);
  CHECK(endpoint.requests_count() == n);
}

TEST_CASE("http client: too many at once are refused, and room comes back", "[http_client]") {
  const auto gate = make_gate();
  model_endpoint endpoint([&](const model_request&) {
    auto a = text_answer("ok");
    a.before_head = gate;
    return a;
  });
  const auto client = adapters::make_http_client({.most_requests = 3, .ca_file = {}});
  std::vector<watched> all(3);
  for (auto& w : all)
    client->start(post(endpoint.origin()), w.events());
  const auto refused = call(*client, post(endpoint.origin()));
  REQUIRE_FALSE(refused.end);
  CHECK(refused.end.error().code == errc::overloaded);
  CHECK(refused.end.error().where == endpoint.origin());
  CHECK(client->running() == 3);
  gate->open();
  for (auto& w : all)
    CHECK(w.wait());
  CHECK(call(*client, post(endpoint.origin())).end);
}

TEST_CASE("http client: out of descriptors a request ends, and later ones go on",
          "[http_client][faults]") {
  model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
  const auto client = adapters::make_http_client();
  SECTION("before the client has begun") {}
  SECTION("when it runs") {
    CHECK(call(*client, post("http://127.0.0.1:1")).end.error().code == errc::io_error);
  }
  {
    constexpr rlim_t few = 64;
    const scarce_descriptors scarce(few);
    for (int i = 0; i < 3; ++i) {
      const auto a = call(*client, post(endpoint.origin()));
      REQUIRE_FALSE(a.end);
      INFO(to_string(a.end.error()));
      CHECK(a.end.error().code == errc::overloaded);
    }
  }
  CHECK(call(*client, post(endpoint.origin())).end);
}

TEST_CASE("http client: a name that many ask for is looked up once at a time", "[http_client]") {
  // Nothing resolves this name (RFC 6761 §6.4), and how long it takes to say so is not ours.
  constexpr std::size_t n = 300;
  const auto client = adapters::make_http_client();
  const auto before = threads_of_process();
  std::vector<watched> all(n);
  for (auto& w : all)
    client->start(post("http://nobody.invalid/v1"), w.events());
  std::size_t most = 0;
  for (auto& w : all) {
    most = std::max(most, threads_of_process());
    const auto r = w.wait();
    REQUIRE_FALSE(r);
    // All at once by the first one's failure, or by their own time limit.
    CHECK((r.error().code == errc::io_error || r.error().code == errc::timed_out));
    CHECK(r.error().where == "http://nobody.invalid:80");
  }
  CHECK(most <= before + 2);
}

TEST_CASE("http client: nothing is left open", "[http_client]") {
  const auto before = descriptors_of_process();
  {
    model_endpoint endpoint([](const model_request&) { return text_answer("ok"); });
    const auto client = adapters::make_http_client();
    for (int i = 0; i < 20; ++i)
      CHECK(call(*client, post(endpoint.origin())).end);
  }
  CHECK(descriptors_of_process() == before);
}

} // namespace boyd::many_test
