#include "program.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <chrono>
#include <filesystem>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::stopped_threads_test {

using namespace boyd::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// Threads of another process that do not run as long as it lives; from outside they look as if
/// they did something that has no end. The thread of the test that makes it also ends it.
class stopped_threads {
 public:
  /// All of `pid` with this name. `possible` is false where tracing is not permitted.
  stopped_threads(pid_t pid, const std::string& name) {
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      if (read_file(entry.path() / "comm") != name + "\n")
        continue;
      const auto thread = static_cast<pid_t>(std::stol(entry.path().filename().string()));
      possible = ::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 &&
                 ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0;
      if (!possible)
        return;
      int status = 0;
      ::waitpid(thread, &status, __WALL);
      threads.push_back(thread);
    }
  }
  ~stopped_threads() {
    for (const auto thread : threads)
      ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  }
  stopped_threads(const stopped_threads&) = delete;
  stopped_threads& operator=(const stopped_threads&) = delete;

  /// Waits until the process has ended: who traces a thread has to take note of its end.
  void see_the_end() {
    for (const auto thread : threads) {
      int status = 0;
      while (::waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status))
        ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
    }
    threads.clear();
  }

  bool possible = true;
  std::vector<pid_t> threads;
};

} // namespace

TEST_CASE("case 10 stuck-actor: threads of the scheduler that never come back: not ready, then the "
          "watchdog ends the node",
          "[e2e][supervision]") {
  const home_of_boyd home("version: 1\n"
                          "kernels:\n"
                          "  - kernel_id: default\n"
                          "    schedule: \"0 0 1 1 *\"\n"
                          "    agents:\n"
                          "      - agent_id: worker\n"
                          "        prompt: work\n"
                          "        executor: {type: command, argv: [sh, -c, \"echo done\"]}\n");
  program node(home.node(), {{"BOYD_HEARTBEAT", "2s"}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(
                              std::chrono::steady_clock::now() - begin)
                              .count()) +
           " ms";
  };
  stopped_threads stopped(node.pid(), "caf.multiplexer"); // what CAF calls its workers
  if (!stopped.possible)
    return tell_skipped("case 10, threads of the scheduler that hang", "tracing is not permitted");
  REQUIRE(stopped.threads.size() >= 2);
  const auto ready = get(home.file("run/control.sock"), "/readyz");
  const auto red = since();
  CHECK_THAT(ready, Contains(" 503 ") && Contains("no answer in time"));
  REQUIRE(node.wait_for_stderr("the watchdog stops the process; not responding: the scheduler"));
  tell_figure("case 10: scheduler stopped, heartbeat of 2 s: not ready after " + red +
              ", ended after " + since());
  stopped.see_the_end();
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 8);
  // Nothing of it is in the way of the next.
  CHECK(home.run({"cycle"}).code == 0);
}

} // namespace boyd::stopped_threads_test
