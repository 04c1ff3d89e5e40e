#include "harness.hpp"
#include "src/adapters/posix/run_ancestry.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace boyd::ancestry_test {

using namespace boyd;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

pid_t pid_in(const std::string& text) {
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

} // namespace

TEST_CASE("a person's shell may speak for a person") {
  CHECK(adapters::why_not_a_person(::getpid(), 0).empty());
  CHECK_THAT(adapters::why_not_a_person(::getpid(), ::getpid()), Contains("the node started"));
  CHECK_THAT(adapters::why_not_a_person(::getpid(), ::getppid()), Contains("the node started"));
  CHECK_FALSE(adapters::why_not_a_person(0, 0).empty());
  CHECK_THAT(adapters::why_not_a_person(1 << 30, 0), Contains("has ended"));
  CHECK_THAT(adapters::describe_process(::getpid()), Contains(std::to_string(::getpid())));
}

TEST_CASE("a caller is told by the user's name and the program's") {
  const auto own = "(process " + std::to_string(::getpid()) + ")";
  CHECK(adapters::describe_caller(::getpid(), 0) ==
        "root, with " + adapters::describe_process(::getpid()));
  CHECK_THAT(adapters::describe_caller(::getpid(), 3'999'999'999),
             Contains("user 3999999999, with ") && Contains(own));
  CHECK_THAT(adapters::describe_caller(::getpid(), -1), Contains("an unknown user, with "));
  CHECK(adapters::describe_process(1 << 30) ==
        "a program (process " + std::to_string(1 << 30) + ")");

  // What is started by a link has the name of its file, not the link's.
  const auto runner = make_runner();
  const temp_dir dir;
  recorder seen;
  auto spec = shell("mkfifo gate; exec /proc/self/exe -c 'echo $$; read x < gate'");
  spec.cwd = dir.path();
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("\n"));
  const auto pid = pid_in(seen.out());
  CHECK(adapters::describe_process(pid) ==
        std::filesystem::canonical("/bin/sh").filename().string() + " (process " +
            std::to_string(pid) + ")");
  runner->signal(*handle, SIGKILL);
  REQUIRE(seen.wait());
}

TEST_CASE("what a run starts is found, whatever it forks and forgets") {
  const auto runner = make_runner();
  const temp_dir dir;
  recorder seen;
  // A child with neither this environment, nor this session, nor this parent; it waits for the
  // test at a pipe.
  auto spec =
      shell("mkfifo " + dir.path() + "/gate; (env -i setsid sh -c 'echo $$ > " + dir.path() +
            "/pid.part; mv " + dir.path() + "/pid.part " + dir.path() + "/pid; read x < " +
            dir.path() + "/gate' &) ; echo $$; read x < " + dir.path() + "/gate");
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("\n"));
  const auto own = pid_in(seen.out());
  REQUIRE(wait_until([&] { return std::filesystem::exists(dir.file("pid")); }));
  std::ifstream file(dir.file("pid"));
  pid_t forked = 0;
  file >> forked;
  REQUIRE(forked > 0);
  CHECK_THAT(adapters::why_not_a_person(own, 0), Contains("belongs to an agent's run"));
  CHECK(adapters::environment_value(forked, "BOYD_RUN").empty());
  CHECK_THAT(adapters::why_not_a_person(forked, ::getpid()), Contains("process host"));
  runner->signal(*handle, SIGKILL);
  REQUIRE(seen.wait());
}

TEST_CASE("case R7: what a run starts cannot speak for a person to another node either") {
  // The other node knows neither this node's process nor, after env -i, the mark of the run.
  const auto runner = make_runner();
  const temp_dir dir;
  const auto how = GENERATE(as<std::string>(), "exec env -i sh -c ", "env -i setsid -f sh -c ",
                            "env -i nohup sh -c ", "(env -i setsid setsid sh -c ");
  INFO(how);
  const std::string body = "'echo $$ > part; mv part pid; read x < gate'";
  auto spec = shell("mkfifo gate; " + how + body +
                    (how.starts_with("(")      ? " &) ; read x < gate"
                     : how.starts_with("exec") ? ""
                                               : " & read x < gate"));
  spec.cwd = dir.path();
  recorder seen;
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(wait_until([&] { return std::filesystem::exists(dir.file("pid")); }));
  pid_t forked = 0;
  std::ifstream(dir.file("pid")) >> forked;
  REQUIRE(forked > 0);
  CHECK(adapters::environment_value(forked, "BOYD_RUN").empty());
  const auto why = adapters::why_not_a_person(forked, 0);
  INFO(why);
  CHECK_THAT(why, Contains("process host") || Contains("belongs to an agent's run"));
  CHECK(adapters::why_not_a_person(::getpid(), 0).empty());
  ::kill(forked, SIGKILL);
  runner->signal(*handle, SIGKILL);
  REQUIRE(seen.wait());
}

} // namespace boyd::ancestry_test
