#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>

/// What somebody took away, and what nobody ended.
namespace boyd::lost_and_left_test {

using namespace boyd::test;

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

std::string yaml_of(const std::string& shell) {
  return "version: 1\nkernels:\n  - schedule: \"@every 1h\"\n    agents:\n      - agent_id: a\n"
         "        executor: {type: command, shell: '" +
         shell + "'}\n";
}

std::string proc(pid_t pid, const std::string& what) {
  return read_file("/proc/" + std::to_string(pid) + "/" + what);
}

bool sleeps(pid_t pid) {
  return proc(pid, "comm") == "sleep\n" &&
         proc(pid, "status").find("State:\tZ") == std::string::npos;
}

} // namespace

TEST_CASE("a database without a byte is no new one", "[e2e]") {
  const home_of_boyd home(yaml_of("echo done"));
  REQUIRE(home.run({"cycle"}).code == 0);
  write_file(home.file("boyd.db"), "");
  for (const auto* verb : {"cycle", "node"}) {
    const auto refused = home.run({verb});
    CHECK(refused.code == 1);
    CHECK_THAT(refused.err, Contains("the database is empty, although "));
    CHECK_THAT(refused.err, Contains(" init"));
  }
  CHECK(home.run({"init", "--no-input"}).code == 0);
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("a node whose home was replaced by another ends, and leaves that one alone", "[e2e]") {
  const home_of_boyd home(yaml_of("echo done"));
  const auto away = home.path() + ".away";
  program old(home.node());
  REQUIRE(old.wait_for_stderr("ready: node "));
  fs::rename(home.path(), away);
  const auto made = home.run({"init", "--no-input"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const auto end = old.finish();
  CHECK(end.code == 6);
  CHECK_THAT(end.err, Contains("the home was replaced by another one"));
  CHECK_FALSE(fs::exists(home.file("run/control.sock")));

  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  fs::remove_all(away);
}

TEST_CASE("what a node and its process host left when both were killed is ended by the next start",
          "[e2e]") {
  // Below the shell that is the host's own child another one, which no signal of a parent reaches.
  const home_of_boyd home(
      yaml_of("setsid sh -c \"echo \\$\\$ > left.pid; exec sleep 600\" & wait"));
  const auto left = home.file("kernel/default/left.pid");
  {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready: node "));
    program cycle({boyd_binary(), "--home", home.path(), "cycle"});
    REQUIRE(wait_until([&] { return fs::exists(left) && !read_file(left).empty(); }));
    const auto host = static_cast<pid_t>(
        std::stol(proc(node.pid(), "task/" + std::to_string(node.pid()) + "/children")));
    // It does not get to run any more before its node is gone.
    ::kill(host, SIGSTOP);
    node.signal(SIGKILL);
    ::kill(host, SIGKILL);
    node.finish();
    cycle.finish();
  }
  const auto pid = static_cast<pid_t>(std::stol(read_file(left)));
  REQUIRE(wait_until([&] { return sleeps(pid); }));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("left by agents of an earlier node"));
  CHECK(wait_until([&] { return !sleeps(pid); }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::lost_and_left_test
