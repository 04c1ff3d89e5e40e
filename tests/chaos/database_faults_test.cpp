#include "acceptance/agreement.hpp"
#include "findings.hpp"
#include "integration/control/raw_client.hpp"
#include "knobs.hpp"
#include "member.hpp"
#include "proxy.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

namespace boyd::database_faults_test {

using namespace boyd::test;
using steady = std::chrono::steady_clock;

namespace {

/// Its effect is keyed by the dispatch: made once, found there by every later run.
const std::string effect = "say began-$BOYD_FENCE; set -C\n"
                           "if true 2>/dev/null > @SITE@/effect-$BOYD_DISPATCH_ID; "
                           "then say effect; else say absorbed; fi\n";

double seconds_since(steady::time_point then) {
  return std::chrono::duration<double>(steady::now() - then).count();
}

test_settings shared_settings(const std::string& store, int lease_s, std::vector<test_agent> agents,
                              int permits = 16) {
  test_settings t;
  t.node = "max_concurrent: " + std::to_string(permits) + ", drain_grace: 5s, store: \"" + store +
           "\", " + lease_settings(lease_s);
  t.agents = std::move(agents);
  return t;
}

nlohmann::json row_for(const site& s, const std::string& agent) {
  return row_of(s.dispatches(), "agent_id", agent);
}

std::vector<nlohmann::json> restarted(const nlohmann::json& status) {
  std::vector<nlohmann::json> found;
  for (const auto& a : status.at("actors"))
    if (a.at("restarts") != 0)
      found.push_back(a);
  return found;
}

void end(node_process& node) {
  node.signal(SIGTERM);
  const int code = node.wait_end();
  INFO(node.log());
  CHECK(code == 0);
}

/// The whole answer of the control API.
std::string get(const site& s, const std::string& path) {
  raw_client client(s.home() + "/run/control.sock");
  client.send("GET " + path + " HTTP/1.1\r\nHost: boyd\r\nConnection: close\r\n\r\n");
  return client.read_all();
}

int port_of(const std::string& uri) {
  return std::atoi(uri.c_str() + uri.rfind(':') + 1);
}

std::string by_way_of(const tcp_proxy& proxy, const std::string& uri) {
  const auto colon = uri.rfind(':');
  return uri.substr(0, colon + 1) + std::to_string(proxy.port()) + uri.substr(uri.find('/', colon));
}

} // namespace

TEST_CASE("case 16 stale-settle: a node that slept through its lease cannot settle", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto t = shared_settings(server->make_database(), 2,
                                 {{"job", effect + "wait_for go; say ended; echo done", ""}});
  const site a(t);
  const site b(t, a);
  node_process sleeper(a.home(), a.log_path());
  sleeper.wait_ready();
  auto cycle = a.start_cycle();
  REQUIRE(eventually([&] { return a.said("began-1") == 1; }));
  sleeper.signal(SIGSTOP);
  node_process other(b.home(), b.log_path());
  other.wait_ready();
  REQUIRE(eventually([&] { return b.said("began-2") == 1; }));
  b.open_gate("go");
  REQUIRE(eventually([&] { return row_for(b, "job").value("status", "") == "done"; }));
  const auto before = row_for(b, "job");
  // Both runs have ended; the first one's result is on its way when its node wakes.
  REQUIRE(eventually([&] { return b.said("ended") == 2; }));
  sleeper.signal(SIGCONT);
  const bool refused = sleeper.wait_for_log("came from a stale owner and was refused");
  INFO(sleeper.log());
  CHECK(refused);
  CHECK(promised(row_for(b, "job") == before, "a stale owner's result changes no final row"));
  CHECK(before.at("fence") == 2);
  CHECK(before.at("rescues") == 1);
  CHECK(promised(a.said("effect") == 1, "one effect beside a stale owner"));
  CHECK(a.said("absorbed") == 1);
  CHECK(cycle.finish().code == 0);
  end(sleeper);
  end(other);
}

TEST_CASE("case 16 stale-settle: a program of a lost lease is gone before its successor begins",
          "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto uri = server->make_database();
  tcp_proxy proxy(port_of(uri));
  // It takes no notice of TERM, and looks whether the one before it lives.
  const std::vector<test_agent> agents{
      {"job",
       "trap '' TERM; p=@SITE@/pid-$BOYD_DISPATCH_ID\n"
       "if [ -e $p ] && kill -0 $(cat $p) 2>/dev/null; then say beside; fi\n"
       "echo $$ > $p; say began-$BOYD_FENCE; until [ -e @SITE@/go ]; do sleep 0.1; done; echo done",
       ""}};
  // KILL 5 s after TERM would mostly come after the other node's next sweep.
  constexpr int lease_s = 4;
  const site a(shared_settings(by_way_of(proxy, uri), lease_s, agents));
  const site b(shared_settings(uri, lease_s, agents), a);
  node_process lonely(a.home(), a.log_path());
  lonely.wait_ready();
  auto cycle = a.start_cycle();
  REQUIRE(eventually([&] { return a.said("began-1") == 1; }));
  node_process other(b.home(), b.log_path());
  other.wait_ready();
  proxy.cut();
  REQUIRE(eventually([&] { return b.said("began-2") == 1; }));
  CHECK(promised(b.said("beside") == 0, "no program of a lost lease beside its successor"));
  b.open_gate("go");
  REQUIRE(eventually([&] { return row_for(b, "job").value("status", "") == "done"; }));
  proxy.pass();
  CHECK(cycle.finish().code == 0);
  end(lonely);
  end(other);
}

TEST_CASE("case 17 crash-after-effect: the effect is found, not repeated", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto t =
      shared_settings(server->make_database(), 30,
                      {{"job", effect + "[ -e @SITE@/go ] || sleep 600; echo done", ""}});
  const site s(t);
  // A job that was there when its node was killed is not one that kills nodes: it has three lives.
  constexpr int kills = 3;
  for (int kill = 1; kill <= kills; ++kill) {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    std::optional<program> cycle;
    if (kill == 1)
      cycle.emplace(std::vector<std::string>{boyd_binary(), "--home", s.home(), "cycle"});
    const auto began = "began-" + std::to_string(kill);
    REQUIRE(eventually([&] {
      return s.said(began) == 1 && s.said("effect") + s.said("absorbed") == std::size_t(kill);
    }));
    node.signal(SIGKILL);
    CHECK(node.wait_end() == 128 + SIGKILL);
  }
  s.open_gate("go");
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] { return row_for(s, "job").value("status", "") == "done"; }));
  const auto row = row_for(s, "job");
  INFO(row.dump());
  CHECK(row.at("fence") == kills + 1);
  CHECK(row.at("rescues") == kills);
  CHECK(promised(s.said("effect") == 1, "one effect after kills between it and its settlement"));
  CHECK(s.said("absorbed") == kills);
  // The same for the cycle's own effect, its commit.
  const auto id = row.at("cycle_id").get<std::string>();
  CHECK(eventually([&] { return records_of(s, id) == 1; }));
  end(node);
}

TEST_CASE("case 20 pg-immediate-restart: what was acknowledged is still there", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto uri = server->make_database();
  std::vector<test_agent> agents;
  for (int i = 0; i < 6; ++i)
    agents.push_back({"job-" + std::to_string(i), effect + "echo done", ""});
  agents.push_back({"long", effect + "wait_for go; say ended; echo done", ""});
  const site s(shared_settings(uri, 30, agents));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] {
    const auto rows = s.dispatches();
    return std::ranges::count_if(rows, [](const auto& r) { return r.at("status") == "done"; }) == 6;
  }));
  const auto before = s.dispatches();
  server->stop_immediately();
  s.open_gate("go");
  REQUIRE(eventually([&] { return s.said("ended") == 1; }));
  server->start();
  CHECK(cycle.finish().code == 0);
  for (const auto& row : before)
    if (row.at("status") == "done")
      CHECK(promised(
          row_of(s.dispatches(), "dispatch_id", row.at("dispatch_id").get<std::string>()) == row,
          "a final row stands through the server's restart: " + row.dump()));
  for (const auto& row : s.dispatches()) {
    INFO(row.dump());
    CHECK(row.at("status") == "done");
    CHECK(row.at("fence") == 1);
  }
  CHECK(s.said("effect") == 7);
  CHECK(s.said("absorbed") == 0);
  CHECK(restarted(s.status()).empty());
  end(node);
}

TEST_CASE("case 21 pg-down: the node says so, restarts nothing, and goes on by itself", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  // BOYD_CHAOS_DOWN_SECONDS=600 is the case as it is written.
  const std::chrono::seconds down{knob("BOYD_CHAOS_DOWN_SECONDS", 4)};
  const site s(shared_settings(server->make_database(), 30,
                               {{"job", effect + "echo done", ""},
                                {"late", effect + "wait_for go; say ended; echo done", ""}}));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("effect") == 2; }));
  server->stop();
  const auto since = steady::now();
  s.open_gate("go");
  CHECK(eventually([&] { return s.said("ended") == 1; }));
  std::string reason;
  CHECK(eventually([&] {
    reason = told(troubles(s.status()));
    return reason.find("store") != std::string::npos;
  }));
  INFO(reason);
  // The control API answers, with the reason, as long as it lasts.
  std::size_t answers = 0;
  eventually(
      [&] {
        const auto rows = get(s, "/api/v1/dispatches");
        CHECK_THAT(rows, Catch::Matchers::Contains("HTTP/1.1 503 ") &&
                             Catch::Matchers::Contains("\"code\":\"store_unavailable\""));
        CHECK_THAT(get(s, "/readyz"), Catch::Matchers::Contains("HTTP/1.1 503 "));
        CHECK_THAT(get(s, "/healthz"), Catch::Matchers::Contains("HTTP/1.1 200 "));
        const auto asked = s.run({"dispatches", "ls", "--json"});
        CHECK(asked.code == 1);
        const auto error = asked.json();
        CHECK(error.is_object());
        if (error.is_object())
          CHECK(error.at("error").at("code") == "store_unavailable");
        ++answers;
        return steady::now() - since >= down;
      },
      down + long_patience);
  REQUIRE(node.running());
  server->start();
  const auto back = steady::now();
  CHECK(cycle.finish().code == 0);
  CHECK(s.run({"cycle"}).code == 0);
  const auto took = seconds_since(back);
  tell_figure(fmt::format("case 21: down for {:.1f} s, {} refusals with the reason, next cycle "
                          "done {:.2f} s after the return",
                          seconds_since(since) - took, answers, took));
  CHECK(took <= at_most(5.0, std::chrono::duration<double>(long_patience).count()));
  const auto status = s.status();
  CHECK(restarted(status).empty());
  CHECK(eventually([&] { return troubles(s.status()).empty(); }));
  for (const auto& row : s.dispatches())
    CHECK(row.at("status") == "done");
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
  end(node);
}

TEST_CASE("case 22 notify-lost: without wake-ups the poll finds the work", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto uri = server->make_database();
  tcp_proxy proxy(port_of(uri));
  const std::vector<test_agent> agents{{"first", effect + "wait_for go; echo done", "priority: 20"},
                                       {"next", effect + "echo done", "priority: 10"}};
  // One place here: `next` waits for the other node, which hears nothing.
  const site a(shared_settings(uri, 30, agents, 1));
  const site b(shared_settings(by_way_of(proxy, uri), 30, agents), a);
  node_process deaf(b.home(), b.log_path());
  deaf.wait_ready();
  proxy.mute_listeners();
  // Nothing is due yet, and its listener is silent from here on.
  node_process node(a.home(), a.log_path());
  node.wait_ready();
  const auto asked = steady::now();
  auto cycle = a.start_cycle();
  REQUIRE(eventually([&] { return a.said("effect") == 2; }));
  const auto took = seconds_since(asked);
  tell_figure(fmt::format("case 22: found by the poll after {:.2f} s", took));
  // The time that the request itself takes comes on top.
  constexpr double poll = 5;
  CHECK(took <= (strict_times() ? poll + 0.5 : poll + 15));
  a.open_gate("go");
  CHECK(cycle.finish().code == 0);
  CHECK(proxy.muted() > 0);
  end(node);
  end(deaf);
}

TEST_CASE("network stalled: a call that gets no answer is given up, and the node goes on",
          "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto uri = server->make_database();
  tcp_proxy proxy(port_of(uri));
  const site s(shared_settings(by_way_of(proxy, uri), 30, {{"job", effect + "echo done", ""}}));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  CHECK(s.run({"cycle"}).code == 0);
  proxy.stall();
  const auto since = steady::now();
  std::string reason;
  CHECK(eventually([&] {
    const auto status = s.run({"status", "--json"}).json();
    reason = status.is_object() && status.contains("actors") ? told(troubles(status)) : "";
    return reason.find("store") != std::string::npos;
  }));
  tell_figure(fmt::format("network stalled: known after {:.1f} s: {}", seconds_since(since),
                          reason.substr(0, reason.find('\n'))));
  proxy.pass();
  CHECK(s.run({"cycle"}).code == 0);
  CHECK(restarted(s.status()).empty());
  CHECK(s.said("effect") == 2);
  CHECK(s.said("absorbed") == 0);
  end(node);
}

TEST_CASE("a dead node's work runs elsewhere soon after its lease", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto lease = chaos_lease();
  constexpr std::size_t jobs = 8;
  // A p99 takes a hundred jobs.
  const auto rounds = static_cast<std::size_t>(knob("BOYD_CHAOS_ROUNDS", strict_times() ? 13 : 2));
  std::vector<test_agent> agents;
  for (std::size_t i = 0; i < jobs; ++i)
    agents.push_back({"job-" + std::to_string(i),
                      "date +%s.%N > @SITE@/start-$BOYD_DISPATCH_ID; say began\n"
                      "[ -e @SITE@/killed ] || sleep 600; echo done",
                      ""});
  std::vector<double> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto t = shared_settings(server->make_database(), lease, agents);
    const site a(t);
    const site b(t, a);
    node_process first(a.home(), a.log_path());
    first.wait_ready();
    auto cycle = a.start_cycle();
    // More often than once where the machine is too slow for the lease.
    REQUIRE(eventually([&] { return a.said("began") >= jobs; }));
    node_process second(b.home(), b.log_path());
    second.wait_ready();
    const auto killed =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    first.signal(SIGKILL);
    CHECK(first.wait_end() == 128 + SIGKILL);
    a.open_gate("killed");
    REQUIRE(eventually([&] {
      const auto rows = b.dispatches();
      return std::ranges::count_if(rows, [](const auto& r) { return r.at("status") == "done"; }) ==
             static_cast<std::ptrdiff_t>(jobs);
    }));
    for (const auto& row : b.dispatches()) {
      CHECK(row.at("rescues") >= 1);
      CHECK(row.at("fence") >= 2);
      const auto started =
          read_file(a.outside("start-" + row.at("dispatch_id").get<std::string>()));
      times.push_back(std::atof(started.c_str()) - killed);
    }
    end(second);
  }
  std::ranges::sort(times);
  REQUIRE(times.size() == jobs * rounds);
  tell_figure(
      fmt::format("a dead node's work runs elsewhere (lease {} s, sweep {} s, at most {} s): "
                  "{} jobs, p50 {:.1f} s, p99 {:.1f} s, longest {:.1f} s",
                  lease, rescue_sweep_s, rescue_bound_s(lease), times.size(),
                  times[times.size() / 2], percentile(times, 0.99), times.back()));
  CHECK(times.front() > 0);
  CHECK(percentile(times, 0.99) <= rescue_bound_s(lease));
}

} // namespace boyd::database_faults_test
