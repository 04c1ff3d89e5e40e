#include "knobs.hpp"
#include "member.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <set>
#include <sys/resource.h>
#include <unistd.h>

namespace boyd::process_faults_test {

using namespace boyd::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::string status_of(const site& s, const std::string& agent) {
  return row_of(s.dispatches(), "agent_id", agent).value("status", "");
}

bool at_rest(const site& s) {
  const auto r = s.run({"status", "--json"});
  const auto status = r.json();
  return r.code == 0 && status.is_object() && status.at("queue").at("pending") == 0 &&
         status.at("queue").at("running") == 0 && status.at("kernels")[0].at("cycle_id") == "" &&
         troubles(status).empty();
}

/// How a process ends by SIGSEGV: a sanitizer reports it and ends the process itself.
const int end_by_segv = sanitized() ? 1 : 128 + SIGSEGV;

/// A memory control group of the test's own, version 1 or 2; removed at the end, when it is empty.
class memory_group {
 public:
  memory_group() {
    const auto name = "boyd-test-" + std::to_string(::getpid());
    std::error_code failed;
    for (const auto& [parent, limit] :
         {std::pair{"/sys/fs/cgroup/memory/", "memory.limit_in_bytes"},
          std::pair{"/sys/fs/cgroup/", "memory.max"}}) {
      const auto path = parent + name;
      if (!fs::create_directory(path, failed))
        continue;
      path_ = path;
      limit_ = path + "/" + limit;
      if (fs::exists(limit_, failed))
        return;
      ::rmdir(path_.c_str());
      path_.clear();
    }
  }
  ~memory_group() {
    if (!path_.empty())
      eventually([&] { return ::rmdir(path_.c_str()) == 0; });
  }
  memory_group(const memory_group&) = delete;
  memory_group& operator=(const memory_group&) = delete;

  /// False when the machine does not let us limit anything.
  bool take(pid_t pid, std::size_t bytes) const {
    return !path_.empty() && put(limit_, std::to_string(bytes)) &&
           put(path_ + "/cgroup.procs", std::to_string(pid));
  }

 private:
  static bool put(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  }

  std::string path_;
  std::string limit_;
};

} // namespace

TEST_CASE("case 14 spawner-thread-ends: kill -9 of a node leaves no child alive", "[chaos]") {
  test_settings t;
  t.agents = {{"one", "say began; exec sleep 600", ""},
              {"two", "say began; setsid sleep 600 & sleep 600", ""},
              {"quick", "say began; say ended; echo done", ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("began") == 3 && status_of(s, "quick") == "done"; }));
  // The thread that asked for them has long done other things; they live.
  auto below = processes_below(node.pid());
  CHECK(std::ranges::count_if(below, [](const auto& p) { return p.there(); }) >= 4);
  node.signal(SIGKILL);
  CHECK(node.wait_end() == 128 + SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(eventually(
      [&] { return std::ranges::none_of(below, [](const auto& p) { return p.there(); }); }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  tell_figure(
      fmt::format("case 14: {} processes gone {:.2f} s after kill -9", below.size(), took.count()));
  CHECK(took <= at_most(1s, 5s));
}

TEST_CASE("case 15 oom-kill: the node is killed for memory, its job runs again and is counted",
          "[chaos]") {
  constexpr std::size_t group_bytes = 160u << 20;
  test_settings t;
  // tail keeps what it has read; the second run asks for nothing.
  t.agents = {{"hog",
               "say began-$BOYD_FENCE; [ $BOYD_FENCE -gt 1 ] || { wait_for go; "
               "head -c 400M /dev/zero | tail -c 400M > @SITE@/sink; sleep 600; }; say ended",
               ""},
              {"other", "say began; say ended", ""}};
  const site s(t);
  const memory_group group;
  pid_t hog = -1;
  {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    // The largest process of a group is killed first; here it is to be the node.
    std::ofstream("/proc/" + std::to_string(node.pid()) + "/oom_score_adj") << 1000;
    pid_t host = -1;
    REQUIRE(eventually([&] { return (host = host_of(node.pid())) > 0; }));
    const bool limited = group.take(node.pid(), group_bytes) && group.take(host, group_bytes);
    auto cycle = s.start_cycle();
    REQUIRE(eventually([&] { return s.said("began-1") == 1 && status_of(s, "other") == "done"; }));
    hog = s.ledger().front().pid;
    s.open_gate("go");
    if (!limited) {
      tell_skipped("case 15, the kernel's own kill for memory; it is sent by hand",
                   "no memory control group may be made");
      node.signal(SIGKILL);
    }
    CHECK(node.wait_end() == 128 + SIGKILL);
  }
  const auto killed = std::chrono::steady_clock::now();
  CHECK(eventually([&] { return !alive(hog); }));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] { return s.said("ended") == 2; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;
  tell_figure(fmt::format("case 15: killed for memory and started again, its job had run anew "
                          "{:.2f} s after the kill",
                          took.count()));
  REQUIRE(eventually([&] { return at_rest(s); }));
  const auto row = row_of(s.dispatches(), "agent_id", "hog");
  INFO(row.dump() << node.log());
  CHECK(row.at("status") == "done");
  CHECK(row.at("rescues") == 1);
  CHECK(row.at("fence") == 2);
  CHECK(status_of(s, "other") == "done");
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
}

TEST_CASE("case 23 suspend: all of a node's processes sleep beyond the lease and go on",
          "[chaos]") {
  constexpr auto lease = 2s;
  constexpr auto asleep = lease + 1s;
  test_settings t;
  t.node = "max_concurrent: 8, " + lease_settings(lease.count());
  t.kernel = "schedule: \"@every 1s\"; overlap: skip; misfire: run_once; max_cycle_history: 50";
  t.agents = {{"job",
               "say began; set -C; if true 2>/dev/null > @SITE@/effect-$BOYD_DISPATCH_ID; "
               "then say effect; else say absorbed; fi; wait_for go; say ended; echo done",
               ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] { return s.said("effect") == 1; }));
  // As when a laptop's lid is closed: the node, its process host and what runs.
  node.signal(SIGSTOP);
  const auto below = processes_below(node.pid());
  for (const auto& p : below)
    ::kill(p.pid, SIGSTOP);
  const auto since = std::chrono::steady_clock::now();
  eventually([&] { return std::chrono::steady_clock::now() - since > asleep; });
  for (const auto& p : below)
    ::kill(p.pid, SIGCONT);
  node.signal(SIGCONT);
  s.open_gate("go");
  // The slots that were slept through are one run, and the schedule goes on.
  REQUIRE(eventually([&] { return s.said("effect") >= 3; }));
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  INFO(node.log());
  std::map<std::string, int> effects;
  for (const auto& line : s.ledger())
    effects[line.dispatch] += line.word == "effect" ? 1 : 0;
  for (const auto& [id, n] : effects)
    CHECK(promised(n <= 1, "one effect through a suspend: " + id));
  std::set<std::string> slots;
  for (const auto& row : s.dispatches())
    CHECK(slots.insert(row.at("cycle_id").get<std::string>()).second);
  const auto first = s.dispatches().back();
  CHECK(first.at("status") == "done");
  // The only node never takes a run of its own for that of a dead one.
  for (const auto& row : s.dispatches())
    CHECK(promised(row.at("rescues") == 0, "no rescue of a run whose node slept: " + row.dump()));
  CHECK(promised(s.said("absorbed") == 0, "no run is repeated after a suspend"));
  tell_figure(fmt::format("case 23: slept {} s with a lease of {} s: no run rescued or repeated",
                          asleep.count(), lease.count()));
}

TEST_CASE("case 25 poison-segv: a job that crashes its node twice is failed, others go on",
          "[chaos]") {
  test_settings t;
  // The parent is the process host, its parent the node.
  t.agents = {{"poison",
               "say began-$BOYD_FENCE; kill -SEGV $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600",
               "priority: 5"},
              {"first", "say began; say ended; echo done", "priority: 20"},
              {"second", "say began; say ended; echo done", "priority: 1"}};
  const site s(t);
  // No cores of crashes that are meant.
  const rlimit none{0, 0};
  rlimit before{};
  ::getrlimit(RLIMIT_CORE, &before);
  ::setrlimit(RLIMIT_CORE, &none);
  for (int crash = 1; crash <= 2; ++crash) {
    INFO("crash " << crash);
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    const auto cycle = crash == 1 ? s.start_cycle() : program({"/bin/true"});
    const int code = node.wait_end();
    INFO(node.log());
    CHECK(code == end_by_segv);
  }
  ::setrlimit(RLIMIT_CORE, &before);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(eventually([&] { return at_rest(s) || !node.running(); }));
  INFO(node.log());
  REQUIRE(node.running());
  const auto row = row_of(s.dispatches(), "agent_id", "poison");
  INFO(row.dump());
  CHECK(row.at("status") == "failed");
  CHECK(row.at("rescues") == 2);
  CHECK(row.at("error").get<std::string>().find("its node was lost in") != std::string::npos);
  CHECK(s.said("began-1") == 1);
  CHECK(s.said("began-2") == 1);
  CHECK(status_of(s, "first") == "done");
  CHECK(status_of(s, "second") == "done");
  CHECK_FALSE(fs::exists(s.home() + "/run/crash"));
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
}

TEST_CASE("case 29 two-nodes-one-sqlite: the second is refused with the holder's pid and age",
          "[chaos]") {
  const site s({.agents = {{"a", "echo done", ""}}});
  node_process first(s.home(), s.log_path());
  first.wait_ready();
  const auto started = s.status().at("node").at("started_at").get<std::string>();
  const auto begin = std::chrono::steady_clock::now();
  const auto second = s.run({"node"});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  tell_figure(fmt::format("case 29: the second node was refused after {:.0f} ms", took.count()));
  INFO(second.err);
  CHECK(second.code == 5);
  CHECK(second.err.find("process " + std::to_string(first.pid())) != std::string::npos);
  // To the second: the refusal leaves out the milliseconds.
  constexpr std::size_t seconds = 19;
  CHECK(second.err.find(started.substr(0, seconds)) != std::string::npos);
  CHECK(first.running());
  first.signal(SIGTERM);
  CHECK(first.wait_end() == 0);
}

TEST_CASE("case 30 lock-ttl-paused: a paused holder keeps its home, however long, and goes on",
          "[chaos]") {
  const site s({.agents = {{"a", "say began; wait_for go; say ended; echo done", ""}}});
  node_process holder(s.home(), s.log_path());
  holder.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("began") == 1; }));
  holder.signal(SIGSTOP);
  const auto paused = std::chrono::steady_clock::now();
  // The home's lock has no time to run out: the system holds it for the process.
  const auto other = s.run({"node"});
  INFO(other.err);
  CHECK(other.code == 5);
  CHECK(other.err.find(std::to_string(holder.pid())) != std::string::npos);
  s.open_gate("go");
  CHECK(eventually([&] { return s.said("ended") == 1; }));
  holder.signal(SIGCONT);
  const auto continued = std::chrono::steady_clock::now();
  CHECK(cycle.finish().code == 0);
  const auto ms = [](auto span) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  };
  tell_figure(fmt::format("case 30: paused for {} ms, another node refused, its cycle done {} ms "
                          "after it went on",
                          ms(continued - paused),
                          ms(std::chrono::steady_clock::now() - continued)));
  CHECK(status_of(s, "a") == "done");
  CHECK(s.said("began") == 1);
  holder.signal(SIGTERM);
  CHECK(holder.wait_end() == 0);
}

TEST_CASE("case 51 tool-forks-daemon: a daemon that a run leaves behind is ended with it",
          "[chaos]") {
  test_settings t;
  t.agents = {{"a",
               "setsid sh -c 'echo $$ > @SITE@/daemon; exec sleep 600' < /dev/null > /dev/null "
               "2>&1 & wait_for daemon; say ended; echo done",
               ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  CHECK(s.run({"cycle"}).code == 0);
  const auto daemon = std::atoi(read_file(s.outside("daemon")).c_str());
  REQUIRE(daemon > 0);
  CHECK(eventually([&] { return !alive(daemon); }));
  CHECK(status_of(s, "a") == "done");
  CHECK(node.running());
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
}

} // namespace boyd::process_faults_test
