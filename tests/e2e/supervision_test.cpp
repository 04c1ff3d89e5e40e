#include "program.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace boyd::supervision_test {

using namespace boyd::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// `agents` agents that run `command`; `faults` as in the configuration.
std::string yaml_of(const std::string& command, const std::string& faults = {}, int agents = 1) {
  std::string text = "version: 1\n"
                     "node: {max_concurrent: 64, drain_grace: 1h}\n"
                     "kernels:\n"
                     "  - kernel_id: default\n"
                     "    schedule: \"0 0 1 1 *\"\n"
                     "    agents:\n";
  for (int i = 0; i < agents; ++i)
    text += "      - agent_id: worker-" + std::to_string(i) +
            "\n        prompt: work\n        timeout: 2h\n"
            "        executor: {type: command, argv: [\"sh\", \"-c\", \"" +
            command + "\"]}\n";
  return faults.empty() ? text : text + "faults: [" + faults + "]\n";
}

/// 2 and 5 s are promised for an end, and the drain's grace here is an hour: between them lies
/// what a machine with other work, and a sanitizer that looks for leaks at the end, may add.
const std::chrono::seconds soon{sanitized() ? 15 : 5};

struct timed_end {
  finished left;
  std::chrono::milliseconds took{};
};

timed_end end_of(program& node) {
  const auto begin = std::chrono::steady_clock::now();
  auto left = node.finish();
  return {std::move(left), std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::steady_clock::now() - begin)};
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++n;
  return n;
}

nlohmann::json actor_of(const home_of_boyd& home, const std::string& name) {
  const auto listed = home.run({"actors", "ls", "--json"});
  INFO(listed.out << listed.err);
  REQUIRE(listed.code == 0);
  const auto body = listed.json();
  for (const auto& a : body.at("items"))
    if (a.at("name") == name)
      return a;
  FAIL("no such part: " << name);
  return {};
}

std::map<std::string, int> statuses(const home_of_boyd& home) {
  std::map<std::string, int> n;
  const auto rows = home.run({"dispatches", "ls", "--json"}).json();
  for (const auto& row : rows.at("items"))
    ++n[row.at("status").get<std::string>()];
  return n;
}

/// systemd's side of sd_notify.
class notify_socket {
 public:
  explicit notify_socket(const std::string& path)
      : path_(path), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    REQUIRE(::bind(fd_, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0);
  }
  ~notify_socket() { ::close(fd_); }
  notify_socket(const notify_socket&) = delete;
  notify_socket& operator=(const notify_socket&) = delete;

  /// Waits for `word` in what comes from now on; all that has come is in `heard`.
  bool hears(const std::string& word) {
    const auto from = heard.size();
    return wait_until([&] {
      std::array<char, 4096> text{};
      for (ssize_t n = 0; (n = ::recv(fd_, text.data(), text.size(), 0)) > 0;)
        heard.append(text.data(), static_cast<std::size_t>(n)).append("\n");
      return heard.find(word, from) != std::string::npos;
    });
  }

  const std::string& path() const { return path_; }
  std::string heard;

 private:
  std::string path_;
  int fd_;
};

/// Lets the node begin an attempt, which leaves the file "begun", and tells it twice to stop. The
/// command that waits for the cycle.
std::unique_ptr<program> stop_twice_at_work(const home_of_boyd& home, program& node) {
  REQUIRE(node.wait_for_stderr("ready: node "));
  auto cycle = std::make_unique<program>(
      std::vector<std::string>{boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return fs::exists(home.file("kernel/default/begun")); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  node.signal(SIGTERM);
  return cycle;
}

} // namespace

TEST_CASE("case 7 blocking-tool-call: the node answers while twice as many tools as cores block",
          "[e2e][supervision]") {
  const int tools = 2 * static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const home_of_boyd home(yaml_of("while [ ! -e go ]; do sleep 0.1; done; echo done", {}, tools));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return statuses(home)["running"] == tools; }));
  std::vector<std::chrono::microseconds> took;
  constexpr int pings = 200;
  for (int i = 0; i < pings; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    // Every part is asked, the kernel among them.
    CHECK_THAT(get(home.file("run/control.sock"), "/api/v1/status"),
               Contains("\"kernel_id\":\"default\"") && !Contains("\"state\":\"silent\""));
    took.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  CHECK(statuses(home)["running"] == tools);
  std::ranges::sort(took);
  const auto p99 = took[pings * 99 / 100];
  tell_figure("case 7: p99 of " + std::to_string(pings) + " pings beside " + std::to_string(tools) +
              " blocking tools: " + std::to_string(p99.count()) + " us");
  // A tool blocks for ever, so that whoever waited for one would wait on.
  CHECK(p99 <= at_most<std::chrono::milliseconds>(50ms, 1s));
  std::ofstream(home.file("kernel/default/go")) << "";
  CHECK(cycle.finish().code == 0);
}

TEST_CASE("case 8 crash-loop: a vital part ends the node with 6 after exactly its restarts",
          "[e2e][supervision]") {
  const home_of_boyd home(
      yaml_of("echo done", "{point: planner.plan, action: crash, count: 1000}"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK(count_of(ended.err, "planner.plan: strikes") == 4); // once, and after three restarts
  CHECK_THAT(ended.err, Contains("giving up: too many restarts: planner: "));
  CHECK(count_of(ended.err, "\n") < 60); // no storm
  CHECK_FALSE(fs::exists(home.file("run/control.sock")));
  cycle.signal(SIGTERM);
  cycle.finish();

  // The service manager starts it again; the cause is mended.
  home.write_configuration(yaml_of("echo done"));
  program again(home.node());
  REQUIRE(again.wait_for_stderr("ready: node "));
  CHECK(home.run({"cycle"}).code == 0);
  again.signal(SIGTERM);
  CHECK(again.finish().code == 0);
}

TEST_CASE(
    "case 8 crash-loop: a store whose worker dies for ever ends the node; nobody is told that "
    "it runs",
    "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  const temp_dir directory;
  notify_socket systemd(directory.file("notify"));
  program node(home.node(), {{"BOYD_FAULTS", "store.apply=crash,count=0"},
                             {"NOTIFY_SOCKET", systemd.path()},
                             {"WATCHDOG_USEC", "20000000"}});
  const auto ended = node.finish();
  static_cast<void>(systemd.hears("STOPPING=1"));
  INFO(ended.err << systemd.heard);
  CHECK(ended.code == 6);
  CHECK(count_of(ended.err, "store: worker ended: ") == 4);
  CHECK_THAT(ended.err, Contains("giving up: too many restarts: store: its worker failed 4 times"));
  CHECK(count_of(systemd.heard, "WATCHDOG=1") <= 1);
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("case 8 crash-loop: a part that is not vital is parked, seen, and started again by hand",
          "[e2e][supervision]") {
  const home_of_boyd home(
      yaml_of("echo done", "{point: librarian.gather, action: crash, count: 6}"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(home.run({"cycle"}).code == 0); // it goes on without
  const auto parked = actor_of(home, "librarian");
  CHECK(parked["state"] == "parked");
  CHECK(parked["restarts"] == 6);
  CHECK_THAT(parked["reason"].get<std::string>(), Contains("failed 6 times within 30s"));
  CHECK_THAT(home.run({"status"}).out,
             Contains("librarian is parked") && Contains("boyd actors unpark librarian"));
  CHECK_THAT(get(home.file("run/control.sock"), "/readyz"), Contains("503"));

  const auto slip = home.run({"actors", "unpark", "libarian"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err, Contains("did you mean: librarian"));
  CHECK(home.run({"actors", "restart", "librarian"}).code == 5);
  CHECK_THAT(home.run({"actors", "unpark", "librarian"}).out, Contains("started again: librarian"));
  CHECK(wait_until([&] { return actor_of(home, "librarian")["state"] == "running"; }));
  const auto restarted = home.run({"actors", "restart", "kernel:default", "--json"});
  CHECK(restarted.code == 0);
  CHECK(restarted.json()["schema"] == "boyd.actor_restart/1");
  CHECK(wait_until([&] {
    return get(home.file("run/control.sock"), "/readyz").find("200 OK") != std::string::npos;
  }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);

  // Without a node nothing lives, and nothing can be ordered.
  CHECK(actor_of(home, "librarian")["state"] == "stopped");
  CHECK(home.run({"actors", "restart", "librarian"}).code == 1);
  CHECK(home.run({"actors", "--help"}).out.starts_with("Example:\n  boyd actors "));
}

TEST_CASE("case 10 stuck-actor: the service manager hears of it, and the watchdog ends the node",
          "[e2e][supervision]") {
  const home_of_boyd home(
      yaml_of("echo done", "{point: state_writer.write, action: delay, delay: 1h, count: 1}"));
  const temp_dir directory;
  notify_socket systemd(directory.file("notify"));
  program node(home.node(), {{"BOYD_HEARTBEAT", "200ms"}, {"NOTIFY_SOCKET", systemd.path()}});
  CHECK(systemd.hears("READY=1\nSTATUS=runs"));
  CHECK(systemd.hears("STATUS=state_writer does not answer"));
  const auto ended = node.finish();
  INFO(ended.err << systemd.heard);
  CHECK(ended.code == 8);
  CHECK_THAT(ended.err, Contains("the watchdog stops the process; not responding: ") &&
                            Contains("state_writer (its worker has been busy with one batch for "));
  // Nothing of the killed process is in the way of the next.
  home.write_configuration(yaml_of("echo done"));
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("case 11 shutdown-with-timers: a timer of an hour does not hold the end",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo begun > begun; exec sleep 7200"));
  program node(home.node());
  const auto cycle = stop_twice_at_work(home, node);
  const auto [ended, took] = end_of(node);
  tell_figure("case 11: ended after " + std::to_string(took.count()) + " ms");
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(took <= at_most<std::chrono::milliseconds>(2s, soon));
  cycle->finish();
}

TEST_CASE("a stop that takes too long ends with 7 and names what is left", "[e2e][supervision]") {
  // It does not mind TERM: its time until KILL is longer than the whole stop may take.
  const home_of_boyd home(
      yaml_of("trap '' TERM; echo begun > begun; while true; do sleep 0.1; done"));
  program node(home.node(), {{"BOYD_STOP_MARGIN", "200ms"}});
  const auto cycle = stop_twice_at_work(home, node);
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 7);
  CHECK_THAT(ended.err, Contains("these parts did not stop in time: ") &&
                            Contains("dispatcher:default/worker-0") &&
                            Contains("; workers that live: "));
  cycle->finish();
  // What ran is given back at the next start, and does its work.
  home.write_configuration(yaml_of("echo done"));
  CHECK(home.run({"cycle"}).code == 0);
  const auto wrong = program(home.node(), {{"BOYD_STOP_MARGIN", "2m"}}).finish();
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("BOYD_STOP_MARGIN") && Contains("unset it"));
}

TEST_CASE("a part that is stuck while the node stops ends it with 7, long before the grace is over",
          "[e2e][supervision]") {
  const home_of_boyd home(
      yaml_of("echo begun > begun; while [ ! -e go ]; do sleep 0.1; done; echo done",
              "{point: store.settle, action: delay, delay: 1h, count: 1}"));
  program node(home.node(), {{"BOYD_HEARTBEAT", "200ms"}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return fs::exists(home.file("kernel/default/begun")); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  write_file(home.file("kernel/default/go"), "");
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 7);
  CHECK_THAT(ended.err,
             Contains("the watchdog stops the process while stopping; not responding: ") &&
                 Contains("store (its worker has been busy with one batch for "));
  cycle.finish();
  home.write_configuration(yaml_of("echo done"));
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("a worker that hangs at the end is waited for, then named, and the exit is 7",
          "[e2e][supervision]") {
  auto yaml = yaml_of("echo done");
  const std::string command = "\"echo done\"";
  yaml.replace(yaml.find(command), command.size(), command + ", \"{prompt_file}\"");
  const home_of_boyd home(yaml);
  // Nobody waits for it: all actors end in order.
  program node(home.node(), {{"BOYD_STOP_MARGIN", "200ms"},
                             {"BOYD_FAULTS", "workspace.unlink=delay,delay=10m,after=1"}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(home.run({"cycle"}).code == 0);
  REQUIRE(node.wait_for_stderr("workspace.unlink: strikes"));
  node.signal(SIGTERM);
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 7);
  CHECK_THAT(ended.err, Contains("exiting with unfinished work: the workers of workspace"));
  CHECK_THAT(ended.err, !Contains("node: ended"));
  CHECK(home.run({"cycle"}).code == 0); // its lock is free
}

TEST_CASE("a migration of the database that takes long is no stuck part", "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  for (const auto* file : {"boyd.db", "boyd.db-wal", "boyd.db-shm"})
    fs::remove(home.file(file)); // of `boyd init`
  // The watchdog ends a node whose worker is at one batch for 2.4 s.
  program node(home.node(), {{"BOYD_HEARTBEAT", "200ms"},
                             {"BOYD_FAULTS", "store.migrate=delay,delay=4s,count=1"}});
  REQUIRE(node.wait_for_stderr("store.migrate: strikes"));
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto ready = get(home.file("run/control.sock"), "/readyz");
  CHECK_THAT(ready, Contains("migrating the database: schema version 1 (tables), for "));
  CHECK(wait_until([&] {
    return get(home.file("run/control.sock"), "/readyz").find("200 OK") != std::string::npos;
  }));
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("case 12 shutdown-during-start: SIGTERM does not wait for a database that takes long to "
          "open",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  for (const auto* file : {"boyd.db", "boyd.db-wal", "boyd.db-shm"})
    fs::remove(home.file(file)); // of `boyd init`
  const std::string point = GENERATE(as<std::string>(), "store.migrate", "store.open");
  program node(home.node(), {{"BOYD_FAULTS", point + "=delay,delay=60s,count=1"}});
  REQUIRE(node.wait_for_stderr(point + ": strikes"));
  node.signal(SIGTERM);
  const auto [ended, took] = end_of(node);
  INFO(ended.err);
  CHECK(took <= at_most<std::chrono::milliseconds>(5s, soon));
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, Contains("stopped while opening the database"));
  CHECK_FALSE(fs::exists(home.file("run/control.sock")));
  CHECK(home.run({"cycle"}).code == 0); // the lock is free, and the database whole
}

TEST_CASE("case 12 shutdown-during-start: SIGTERM at each step of the start leaves nothing behind",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  constexpr int died_of_term = 128 + SIGTERM;
  const std::vector<std::function<bool(program&)>> steps{
      [](program&) { return true; },
      [&](program& p) {
        const auto own = std::to_string(p.pid());
        return wait_until(
            [&] { return read_file(home.file("run/lock")).find(own) != std::string::npos; });
      },
      [&](program&) { return wait_until([&] { return fs::exists(home.file("boyd.db-wal")); }); },
      [&](program&) {
        return wait_until([&] { return fs::exists(home.file("run/control.sock")); });
      },
      [](program& p) { return p.wait_for_stderr("ready: node "); },
  };
  std::chrono::milliseconds longest{0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("step " << i);
    // What a killed node left is looked at beside all this: here a pipe that nobody writes into.
    fs::create_directories(home.file("run/worktrees"));
    ::mkfifo(home.file("run/worktrees/left.boyd").c_str(), 0600);
    program node(home.node());
    CHECK(steps[i](node));
    node.signal(SIGTERM);
    const auto [ended, took] = end_of(node);
    INFO(ended.err);
    CHECK(took <= at_most<std::chrono::milliseconds>(5s, soon));
    longest = std::max(longest, took);
    // Before it watches signals nothing is there that could be left.
    CHECK((ended.code == 0 || (i == 0 && ended.code == died_of_term)));
    CHECK_FALSE(fs::exists(home.file("run/control.sock")));
    CHECK(home.run({"status"}).code == 0); // the lock is free
  }
  tell_figure("case 12: ended at the latest after " + std::to_string(longest.count()) + " ms");
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("case 13 double-sigterm: a storm of signals ends it at once, and in order",
          "[e2e][supervision]") {
  // The second one does not want to end.
  const std::string work =
      GENERATE(as<std::string>(), "exec sleep 7200", "trap '' TERM; while :; do sleep 0.1; done");
  const home_of_boyd home(yaml_of("echo begun > begun; " + work));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return fs::exists(home.file("kernel/default/begun")); }));
  constexpr int storm = 500;
  for (int i = 0; i < storm; ++i)
    node.signal(i % 2 == 0 ? SIGINT : SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  node.signal(SIGINT);
  const auto [ended, took] = end_of(node);
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(took <= at_most<std::chrono::milliseconds>(2s, soon));
  tell_figure("case 13: " + work + ": ended after " + std::to_string(took.count()) + " ms");
  CHECK(count_of(ended.err, "second signal") == 1);
  cycle.finish();
  CHECK(statuses(home) == std::map<std::string, int>{{"pending", 1}});
  const auto row = home.run({"dispatches", "ls", "--json"}).json().at("items").front();
  CHECK(row.at("attempt") == 0);
  CHECK(row.at("lease_owner") == "");
}

TEST_CASE("systemd hears of the start, of progress, of a reload and of the end",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  const temp_dir directory;
  notify_socket systemd(directory.file("notify"));
  program node(home.node(), {{"BOYD_HEARTBEAT", "100ms"},
                             {"NOTIFY_SOCKET", systemd.path()},
                             {"WATCHDOG_USEC", "60000000"}});
  REQUIRE(systemd.hears("READY=1\nSTATUS=runs\n"));
  CHECK(systemd.hears("WATCHDOG=1\n"));
  CHECK(systemd.hears("WATCHDOG=1\n"));
  node.signal(SIGHUP);
  CHECK(systemd.hears("RELOADING=1\nMONOTONIC_USEC="));
  CHECK(wait_until([&] {
    static_cast<void>(systemd.hears("WATCHDOG=1\n"));
    return count_of(systemd.heard, "READY=1") == 2;
  }));
  CHECK_THAT(node.stderr_now(), Contains("configuration reloaded"));
  node.signal(SIGTERM);
  // The grace of an hour, 40 s for the end, and 10 s for the last words of an end that is overdue.
  CHECK(systemd.hears("STOPPING=1\nEXTEND_TIMEOUT_USEC=3650000000\n"));
  CHECK(node.finish().code == 0);
}

TEST_CASE("both units are what systemd understands", "[e2e][supervision]") {
  if (!fs::exists("/usr/bin/systemd-analyze"))
    return tell_skipped("what systemd says to the units", "no systemd-analyze");
  const char* source = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(source != nullptr);
  const temp_dir directory;
  for (const bool of_a_person : {false, true}) {
    auto unit = read_file(source + std::string("/config/systemd/") +
                          (of_a_person ? "user/boyd.service" : "boyd.service"));
    REQUIRE_THAT(unit, Contains("Type=notify") && Contains("WatchdogSec="));
    // Neither the installed binary nor the user need be there.
    for (const auto* installed : {"/usr/local/bin/boyd ", "%h/.local/bin/boyd "})
      if (const auto at = unit.find(std::string("ExecStart=") + installed); at != std::string::npos)
        unit.replace(at, std::string("ExecStart=").size() + std::string(installed).size(),
                     "ExecStart=/bin/true ");
    for (const auto* line : {"User=boyd\n", "Group=boyd\n"})
      if (const auto at = unit.find(line); at != std::string::npos)
        unit.erase(at, std::string(line).size());
    write_file(directory.file("boyd.service"), unit);
    std::vector<std::string> verify{"/usr/bin/systemd-analyze", "verify", "--man=no"};
    if (of_a_person)
      verify.emplace_back("--user");
    verify.push_back(directory.file("boyd.service"));
    const auto said = program(verify, {{"XDG_RUNTIME_DIR", directory.path()}}).finish();
    INFO(said.err << said.out);
    CHECK(said.code == 0);
    CHECK(said.err.empty());
  }
}

} // namespace boyd::supervision_test
