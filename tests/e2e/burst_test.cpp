#include "boyd/core/limits.hpp"
#include "integration/control/raw_client.hpp"
#include "program.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace boyd::burst_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr long most_kib = 60 * 1024;

std::string waiting_agent() {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: work\n"
         "        executor: {type: command, shell: 'while [ ! -e go ]; do sleep 0.05; done'}\n";
}

long resident_kib(pid_t pid, const std::string& key = "VmRSS:") {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  const auto at = status.find(key);
  return at == std::string::npos ? -1 : std::atol(status.c_str() + at + key.size());
}

std::string request(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: boyd\r\n\r\n";
}

/// Connects, sends, and leaves without reading.
void abandon(const std::string& socket, const std::string& text) {
  raw_client client;
  if (client.connect(socket))
    (void)client.send(text);
}

} // namespace

TEST_CASE("case R2: a burst of abandoned requests leaves a node that answers and is small",
          "[e2e][burst]") {
  const home_of_boyd home(waiting_agent());
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto socket = home.file("run/control.sock");
  // A cycle that lasts, for those who wait for it.
  const auto begun = ask_socket(socket, "POST /api/v1/cycles");
  REQUIRE_THAT(begun, Contains("cycle_id"));
  const auto at = begun.find("\"cycle_id\":\"");
  const auto cycle = begun.substr(at + 12, begun.find('"', at + 12) - at - 12);
  const auto rounds = test::knob("BOYD_BURST", 3000);
  const std::vector<std::string> texts = {
      request("/api/v1/status"),
      request("/api/v1/agents"),
      request("/api/v1/why"),
      request("/api/v1/events"),
      request("/readyz"),
      request("/api/v1/cycles/" + cycle + "?wait=1"),
      "GET /api/v1/status HTTP/1.1\r\nHost: bo",
      "GET /api/v1/status HTTP/1.1\r\nX: " + std::string(64 << 10, 'x'),
  };
  for (long i = 0; i < rounds; ++i)
    abandon(socket, texts[0]);
  for (long i = 0; i < rounds; ++i)
    abandon(socket, texts[static_cast<std::size_t>(i) % texts.size()]);
  CHECK_THAT(get(socket, "/api/v1/status"), Contains("200 OK"));
  if (!sanitized()) {
    const auto peak = resident_kib(node.pid(), "VmHWM:");
    tell_figure("case R2: " + std::to_string(resident_kib(node.pid())) +
                " KiB resident after the burst");
    CHECK(peak < 2 * most_kib);
    CHECK(wait_until([&] { return resident_kib(node.pid()) < most_kib; }));
  }
  // Others still have their waits and their events.
  CHECK_THAT(get(socket, "/readyz"), Contains("200 OK"));
  write_file(home.file("kernel/default/go"), "");
  CHECK_THAT(get(socket, "/api/v1/cycles/" + cycle + "?wait=1"), Contains("200 OK"));
  for (long i = 0; i < rounds / 4; ++i)
    abandon(socket, texts[static_cast<std::size_t>(i) % texts.size()]);
  node.signal(SIGTERM);
  for (long i = 0; i < rounds / 4; ++i)
    abandon(socket, texts[static_cast<std::size_t>(i) % texts.size()]);
  CHECK(node.finish().code == 0);
}

TEST_CASE("case R2: silent clients and slow readers do not keep others away", "[e2e][burst]") {
  const home_of_boyd home(waiting_agent());
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto socket = home.file("run/control.sock");
  std::vector<raw_client> held;
  for (std::size_t i = 0; i < 2 * boyd::limits::http_connections; ++i) {
    held.emplace_back();
    REQUIRE(held.back().connect(socket));
    (void)held.back().send(i % 2 == 0 ? "GET /api/v1/status HTTP/1.1\r\nHost: b"
                                      : request("/api/v1/status"));
  }
  CHECK(wait_until(
      [&] { return get(socket, "/api/v1/status").find("200 OK") != std::string::npos; }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::burst_test
