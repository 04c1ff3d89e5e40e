#include "boyd/exec/output_keeper.hpp"
#include "harness.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <thread>

namespace boyd::runner_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::size_t thread_count() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

std::int64_t peak_rss_kb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

} // namespace

TEST_CASE("a program's output, exit code and usage are reported") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("cat; echo problem >&2; exit 3");
  spec.input = "hello";
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK(seen.out() == "hello");
  CHECK(seen.exit().started);
  CHECK(seen.exit().exit_code == 3);
  CHECK(seen.exit().signal == 0);
  CHECK(seen.exit().max_rss_kb > 0);
  CHECK(runner->running() == 0);
}

TEST_CASE("a child has exactly the environment given, no foreign descriptor, its own group") {
  const auto runner = make_runner();
  recorder seen;
  process_spec spec =
      shell("env | cut -d= -f1 | sort | tr '\\n' ' '; ls /proc/self/fd | tr '\\n' ' '; "
            "test \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ && echo leader; "
            "while read -r key value; do case $key in SigBlk:|SigIgn:) "
            "echo $key $((0x$value & 0x7fffffff)) ;; esac; done </proc/self/status");
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  // ls itself holds descriptor 3; PWD is the shell's own. Signals 32 and up belong to libc.
  CHECK(seen.out() == "BOYD_RUN BOYD_TEST_MARK PATH PWD 0 1 2 3 leader\n"
                      "SigBlk: 0\nSigIgn: 0\n");
}

TEST_CASE("what cannot start says why") {
  const auto runner = make_runner();
  const temp_dir dir;
  process_spec spec;
  spec.cwd = dir.path();
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  std::string expected;
  int number = 0;
  SECTION("relative program") {
    spec.argv = {"./report.sh"};
    expected = "cannot execute ./report.sh: No such file or directory";
    number = ENOENT;
  }
  SECTION("not in PATH") {
    spec.argv = {"no-such-program-anywhere"};
    expected = "cannot execute no-such-program-anywhere: No such file or directory";
    number = ENOENT;
  }
  SECTION("not executable") {
    std::ofstream(dir.file("plain")) << "text";
    spec.argv = {"./plain"};
    expected = "cannot execute ./plain: Permission denied";
    number = EACCES;
  }
  SECTION("no directory") {
    spec.argv = {"true"};
    spec.cwd = dir.file("gone");
    expected = "cannot change to directory " + dir.file("gone") + ": No such file or directory";
    number = ENOENT;
  }
  SECTION("no program") {
    expected = "cannot execute (no program): Invalid argument";
    number = EINVAL;
  }
  SECTION("too long") {
    spec.argv = {"true", std::string(200'000, 'x')};
    expected = "cannot execute true: Argument list too long";
    number = E2BIG;
  }
  recorder seen;
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK_FALSE(seen.exit().started);
  CHECK(seen.exit().start_errno == number);
  CHECK(seen.exit().start_error == expected);
  CHECK(seen.exits() == 1);
}

TEST_CASE("megabytes of input reach a slow reader") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("sleep 0.3; wc -c");
  spec.input = std::string(8u << 20, 'p');
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK(seen.out() == "8388608\n");
}

TEST_CASE("a child that never reads its input is no trouble") {
  const auto runner = make_runner();
  recorder closes;
  recorder sleeps;
  auto spec = shell("exec <&-; echo done");
  spec.input = std::string(8u << 20, 'p');
  REQUIRE(runner->start(spec, closes.events()).has_value());
  spec.argv = {"sleep", "0.2"};
  REQUIRE(runner->start(spec, sleeps.events()).has_value());
  REQUIRE(closes.wait());
  REQUIRE(sleeps.wait());
  CHECK(closes.out() == "done\n");
  CHECK(closes.exit().exit_code == 0);
  CHECK(sleeps.exit().exit_code == 0);
}

TEST_CASE("case 14 spawner-thread-ends: a child outlives the thread that asked for it") {
  const auto runner = make_runner();
  const temp_dir dir;
  recorder seen;
  std::thread([&] {
    const auto spec = shell("echo ready; while [ ! -e '" + dir.file("go") +
                            "' ]; do sleep 0.02; done; echo alive");
    REQUIRE(runner->start(spec, seen.events()).has_value());
    REQUIRE(seen.wait_for_output("ready"));
  }).join();
  CHECK(seen.exits() == 0);
  std::ofstream(dir.file("go")) << "";
  REQUIRE(seen.wait());
  CHECK(seen.out() == "ready\nalive\n");
  CHECK(seen.exit().exit_code == 0);
}

TEST_CASE("tool-forks-daemon: what a run leaves behind is ended with it") {
  const auto runner = make_runner();
  const process_mark mark;
  recorder seen;
  std::string script;
  SECTION("a background job in the group") {
    script = "sleep 100 & echo ready";
  }
  SECTION("its own session") {
    script = "setsid sleep 100 & echo ready";
  }
  SECTION("double fork, own session, pipes closed") {
    script = "(setsid sh -c 'sleep 100 & sleep 100' >/dev/null 2>&1 </dev/null &) ; echo ready";
  }
  SECTION("environment cleared") {
    script = "(setsid env -i sh -c 'sleep 98.5 & sleep 98.5' >/dev/null 2>&1 &) ; echo ready";
  }
  REQUIRE(runner->start(shell(script, mark), seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK(seen.out() == "ready\n");
  CHECK(seen.exit().exit_code == 0);
  CHECK(mark.living() == 0);
  const auto left = adapters::descendants_of(::getpid());
  CHECK(left.size() == 1); // the host alone
}

TEST_CASE("SIGKILL ends descendants that left the group; other runs are not touched") {
  const auto runner = make_runner();
  const process_mark mark;
  const process_mark other_mark;
  recorder victim;
  recorder other;
  const std::string script =
      "setsid sleep 100 & (setsid sleep 100 &) ; sleep 100 & echo ready; wait";
  const auto other_handle = runner->start(shell(script, other_mark), other.events());
  const auto handle = runner->start(shell(script, mark), victim.events());
  REQUIRE(handle.has_value());
  REQUIRE(victim.wait_for_output("ready"));
  REQUIRE(other.wait_for_output("ready"));
  REQUIRE(wait_until([&] { return mark.living() == 4 && other_mark.living() == 4; }));
  runner->signal(*handle, SIGKILL);
  REQUIRE(victim.wait());
  CHECK(victim.exit().signal == SIGKILL);
  CHECK(mark.living() == 0);
  CHECK(other_mark.living() == 4);
  CHECK(runner->running() == 1);
  runner->signal(*other_handle, SIGKILL);
  REQUIRE(other.wait());
  CHECK(other_mark.living() == 0);
}

TEST_CASE("SIGKILL: no program sees its children end and ends well before its turn") {
  const auto runner = make_runner();
  for (int round = 0; round < 50; ++round) {
    const process_mark mark;
    recorder seen;
    // Each child leaves the group and is killed by itself; the end of the last one ends the shell.
    const std::string script = "for i in 1 2 3 4 5 6 7 8; do setsid sleep 100 & done; "
                               "echo ready; wait $!; exit 0";
    const auto handle = runner->start(shell(script, mark), seen.events());
    REQUIRE(handle.has_value());
    REQUIRE(seen.wait_for_output("ready"));
    REQUIRE(wait_until([&] { return mark.living() == 9; }));
    runner->signal(*handle, SIGKILL);
    REQUIRE(seen.wait());
    CHECK(seen.exit().signal == SIGKILL);
    CHECK(mark.living() == 0);
  }
}

TEST_CASE("case 51 tool-forks-daemon: what is being started while its run is killed ends with it") {
  const auto runner = make_runner();
  const process_mark other_mark;
  recorder other;
  const auto other_handle =
      runner->start(shell("echo ready; sleep 100", other_mark), other.events());
  REQUIRE(other.wait_for_output("ready"));
  for (int round = 0; round < 40; ++round) {
    const process_mark mark;
    recorder seen;
    // Each is an orphan of the run that executes two programs one after the other.
    const auto handle = runner->start(
        shell("for i in 1 2 3 4; do (setsid sleep 100 &); done; echo ready; wait", mark),
        seen.events());
    REQUIRE(handle.has_value());
    REQUIRE(seen.wait_for_output("ready"));
    runner->signal(*handle, SIGKILL);
    REQUIRE(seen.wait());
    INFO("round " << round);
    REQUIRE(mark.living() == 0);
  }
  CHECK(other_mark.living() == 2);
  runner->signal(*other_handle, SIGKILL);
  REQUIRE(other.wait());
}

TEST_CASE("TERM reaches the whole group and may be ignored; KILL may not; on_exit comes once") {
  const auto runner = make_runner();
  recorder seen;
  const auto handle = runner->start(
      shell("trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done"), seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("ready"));
  runner->signal(*handle, SIGTERM);
  REQUIRE(seen.wait_for_output("term"));
  CHECK(seen.exits() == 0);
  runner->signal(*handle, SIGKILL);
  runner->signal(*handle, SIGKILL);
  REQUIRE(seen.wait());
  CHECK(seen.exit().signal == SIGKILL);
  runner->signal(*handle, SIGKILL);
  recorder after;
  REQUIRE(runner->start(shell("true"), after.events()).has_value());
  REQUIRE(after.wait());
  CHECK(seen.exits() == 1);
}

TEST_CASE("tool-10-gb-output: kept bytes and memory are bounded") {
  const auto runner = make_runner();
  constexpr std::size_t cap = 1u << 20;
  constexpr std::uint64_t total = 200'000'000;
  exec::output_keeper kept(cap);
  recorder seen;
  auto events = seen.events();
  events.on_output = [&](output_stream, std::string_view bytes) { kept.append(bytes); };
  const auto before = peak_rss_kb();
  REQUIRE(runner->start(shell("yes 'a line of output' | head -c 200000000"), events).has_value());
  REQUIRE(seen.wait());
  CHECK(kept.total() == total);
  const auto view = kept.render(cap);
  CHECK(view.cut >= total - cap);
  CHECK(view.text.size() < cap + 100);
  CHECK(view.text.find(std::to_string(view.cut) + " bytes not stored") != std::string::npos);
  // A sanitizer keeps freed memory in quarantine.
  const std::int64_t allowed_kb = (sanitized() ? 96 : 24) << 10;
  CHECK(peak_rss_kb() - before < allowed_kb);
}

TEST_CASE("64 processes at once need one thread of the runner") {
  const auto idle = thread_count();
  const auto runner = make_runner();
  const temp_dir dir;
  std::vector<std::unique_ptr<recorder>> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(std::make_unique<recorder>());
    const auto script = "echo ready; while [ ! -e '" + dir.file("go") +
                        "' ]; do sleep 0.05; done; echo " + std::to_string(i);
    REQUIRE(runner->start(shell(script), all.back()->events()).has_value());
  }
  for (auto& r : all)
    REQUIRE(r->wait_for_output("ready"));
  CHECK(thread_count() == idle + 1);
  CHECK(runner->running() == 64);
  std::ofstream(dir.file("go")) << "";
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i]->wait());
    CHECK(all[i]->out() == "ready\n" + std::to_string(i) + "\n");
    CHECK(all[i]->exits() == 1);
  }
  CHECK(runner->running() == 0);
}

TEST_CASE("fd-exhaustion: a start without descriptors fails and the runner goes on") {
  const auto runner = make_runner();
  recorder refused;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  REQUIRE(runner->start(shell("true"), refused.events()).has_value());
  const bool came = refused.wait();
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(came);
  CHECK_FALSE(refused.exit().started);
  CHECK(refused.exit().start_errno == EMFILE);
  CHECK_FALSE(refused.exit().own_limits);
  recorder good;
  REQUIRE(runner->start(shell("true"), good.events()).has_value());
  REQUIRE(good.wait());
  CHECK(good.exit().exit_code == 0);
}

TEST_CASE("limits are those of the spec") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("ulimit -n");
  spec.max_open_files = 77;
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK(seen.out() == "77\n");
}

} // namespace boyd::runner_test
