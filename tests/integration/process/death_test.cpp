#include "harness.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>

namespace boyd::death_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// Runs until it is killed: a node with the home's lock and three awkward runs.
[[noreturn]] void play_node(const std::string& lock_path, const process_mark& mark, int ready) {
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || ::flock(lock, LOCK_EX | LOCK_NB) != 0)
    ::_exit(1);
  const auto runner = make_runner(lock);
  recorder plain;
  recorder session;
  recorder daemon;
  (void)runner->start(shell("trap '' TERM INT HUP; echo ready; sleep 100 & wait", mark),
                      plain.events());
  (void)runner->start(shell("setsid sh -c 'echo ready; sleep 100; :'", mark), session.events());
  (void)runner->start(
      shell("(setsid sh -c '(sleep 100 &) ; echo ready; sleep 100' &) ; sleep 100", mark),
      daemon.events());
  const bool all = plain.wait_for_output("ready") && session.wait_for_output("ready") &&
                   daemon.wait_for_output("ready");
  const char told = all ? 'y' : 'n';
  (void)!::write(ready, &told, 1);
  for (;;)
    ::pause();
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, static_cast<int>(patience.count())) == 1;
}

pid_t host_pid() {
  const auto children = adapters::children_of(::getpid());
  return children.size() == 1 ? children.front() : -1;
}

} // namespace

TEST_CASE("no child survives kill -9 of the node, and the lock is held until the last is gone") {
  const temp_dir dir;
  const process_mark mark;
  int ready[2];
  REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
  const pid_t node = ::fork();
  REQUIRE(node >= 0);
  if (node == 0)
    play_node(dir.file("lock"), mark, ready[1]);
  char told = 0;
  REQUIRE(readable(ready[0]));
  REQUIRE(::read(ready[0], &told, 1) == 1);
  CHECK(told == 'y');
  CHECK(mark.living() >= 7);
  const int lock = ::open(dir.file("lock").c_str(), O_RDWR | O_CLOEXEC);
  CHECK(::flock(lock, LOCK_EX | LOCK_NB) == -1);
  ::kill(node, SIGKILL);
  REQUIRE(::waitpid(node, nullptr, 0) == node);
  // Taking the lock is the proof: it is free only when the host has ended everything.
  REQUIRE(wait_until([&] { return ::flock(lock, LOCK_EX | LOCK_NB) == 0; }));
  CHECK(mark.living() == 0);
  for (const int fd : {ready[0], ready[1], lock})
    ::close(fd);
}

TEST_CASE("the runner's end ends everything and reports each process once") {
  const process_mark mark;
  recorder seen;
  recorder never_started;
  {
    const auto runner = make_runner();
    REQUIRE(runner->start(shell("setsid sleep 100 & echo ready; wait", mark), seen.events())
                .has_value());
    REQUIRE(seen.wait_for_output("ready"));
  }
  CHECK(seen.exits() == 1);
  CHECK(seen.exit().signal == SIGKILL);
  CHECK(mark.living() == 0);
  CHECK(adapters::children_of(::getpid()).empty());
}

TEST_CASE("a dead host is reported as killed processes and is started again") {
  const auto runner = make_runner();
  const process_mark mark;
  recorder seen;
  REQUIRE(runner
              ->start(shell("setsid sleep 100 & (setsid sleep 100 &) ; echo ready; wait", mark),
                      seen.events())
              .has_value());
  REQUIRE(seen.wait_for_output("ready"));
  const pid_t host = host_pid();
  REQUIRE(host > 0);
  CHECK(runner->host().has_host);
  CHECK(runner->host().restarts == 0);
  ::kill(host, SIGKILL);
  REQUIRE(seen.wait());
  CHECK(seen.exit().signal == SIGKILL);
  CHECK(seen.exits() == 1);
  CHECK(wait_until([&] { return mark.living() == 0; }));
  // It comes back by itself, with nothing to start.
  CHECK(wait_until([&] { return runner->host().alive; }));
  CHECK(runner->host().restarts == 1);
  CHECK(runner->host().last_error.find("the process host died") == 0);
  recorder next;
  REQUIRE(runner->start(shell("true"), next.events()).has_value());
  REQUIRE(next.wait());
  CHECK(next.exit().started);
  CHECK(next.exit().exit_code == 0);
}

TEST_CASE("case R10: a program that kills the host is told from those that die with it when it is "
          "alone") {
  const bool others = GENERATE(true, false);
  const auto runner = make_runner();
  const process_mark mark;
  recorder victim;
  if (others) {
    REQUIRE(runner->start(shell("echo ready; sleep 100", mark), victim.events()).has_value());
    REQUIRE(victim.wait_for_output("ready"));
  }
  recorder killer;
  REQUIRE(runner->start(shell("kill -9 $PPID; sleep 100", mark), killer.events()).has_value());
  REQUIRE(killer.wait());
  CHECK(killer.exit().signal == SIGKILL);
  CHECK(killer.exit().host_lost == others);
  if (others) {
    REQUIRE(victim.wait());
    CHECK(victim.exit().host_lost);
  }
  CHECK(wait_until([&] { return mark.living() == 0 && runner->host().alive; }));
  recorder next;
  REQUIRE(runner->start(shell("kill -9 $$"), next.events()).has_value());
  REQUIRE(next.wait());
  CHECK_FALSE(next.exit().host_lost);
}

TEST_CASE("case 10 stuck-actor: a host that lives but does not answer is ended and started again") {
  const bool busy = GENERATE(true, false);
  const auto made = adapters::make_process_runner({.host_ping = 50ms});
  REQUIRE(made);
  const auto& runner = *made;
  const process_mark mark;
  recorder seen;
  if (busy) {
    REQUIRE(runner->start(shell("echo ready; sleep 100", mark), seen.events()).has_value());
    REQUIRE(seen.wait_for_output("ready"));
  }
  CHECK(runner->host().problem.empty());
  const pid_t host = host_pid();
  REQUIRE(host > 0);
  ::kill(host, SIGSTOP);
  CHECK(wait_until([&] { return runner->host().problem.find("has not answered") == 0; }));
  CHECK(wait_until([&] { return runner->host().restarts == 1; }));
  if (busy) {
    REQUIRE(seen.wait());
    CHECK(seen.exit().signal == SIGKILL);
    CHECK(seen.exits() == 1);
    CHECK(mark.living() == 0);
  }
  CHECK(wait_until([&] { return runner->host().problem.empty(); }));
  recorder next;
  REQUIRE(runner->start(shell("true"), next.events()).has_value());
  REQUIRE(next.wait());
  CHECK(next.exit().exit_code == 0);
}

TEST_CASE("a start without a host fails as transient, and the next ones work") {
  const auto runner = make_runner();
  const pid_t host = host_pid();
  REQUIRE(host > 0);
  ::kill(host, SIGKILL);
  // Whether one meets the time without a host is chance; what it is told then is not.
  CHECK(wait_until([&] {
    recorder next;
    REQUIRE(runner->start(shell("true"), next.events()).has_value());
    REQUIRE(next.wait());
    if (!next.exit().started)
      REQUIRE(next.exit().start_errno == EAGAIN);
    return runner->host().restarts == 1 && next.exit().started && next.exit().exit_code == 0;
  }));
}

TEST_CASE("a host that cannot be executed is an error of the start") {
  const auto made = adapters::make_process_runner({.executable = "/nonexistent/boyd"});
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == errc::spawn_failed);
}

} // namespace boyd::death_test
