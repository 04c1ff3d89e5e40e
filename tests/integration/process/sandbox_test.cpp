#include "boyd/exec/sandbox.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/queue/usage_json.hpp"
#include "harness.hpp"
#include "src/adapters/posix/sandbox_child.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::sandbox_test {

using namespace boyd;
using namespace boyd::test;

namespace {

using mode_t_of = config::sandbox_settings::mode_t;

/// `by_mounts`: Landlock alone does not do it.
bool skipped(sandbox_kind kind, const std::string& what, bool by_mounts = false) {
  const auto can = adapters::probe_sandbox();
  if (kind == sandbox_kind::landlock && can.landlock_abi == 0) {
    tell_skipped(what, "this kernel has no Landlock");
    return true;
  }
  if (kind == sandbox_kind::bubblewrap && can.bubblewrap.empty()) {
    tell_skipped(what, can.bubblewrap_problem);
    return true;
  }
  if (kind == sandbox_kind::landlock && by_mounts && !can.own_mounts) {
    tell_skipped(what, "no mounts of one's own on this machine");
    return true;
  }
  return false;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

/// A node's home with its secrets, a workspace in it, and a program run in a sandbox of this kind.
struct fixture {
  temp_dir dir;
  std::string home = dir.file("home");
  std::string workspace = home + "/kernel/default";
  std::string key = dir.file("key");
  std::shared_ptr<process_runner> runner = make_runner();
  config::sandbox_settings settings;
  std::uint64_t open_files = 0; ///< its own limit; 0: none
  std::string path;             ///< PATH; empty: a standard one
  std::string report;
  std::string trouble;

  explicit fixture(sandbox_kind kind) {
    settings.mode = kind == sandbox_kind::bubblewrap ? mode_t_of::bubblewrap : mode_t_of::landlock;
    std::filesystem::create_directories(workspace);
    std::filesystem::create_directories(home + "/run");
    write(home + "/boyd.yaml", "version: 1\n");
    write(home + "/boyd.db", "rows");
    write(key, "sk-secret");
    write(dir.file("outside"), "mine");
  }

  /// Output and how it ended.
  process_exit run(const std::string& script, std::string& out,
                   const std::vector<std::string>& argv = {}, const std::string& below = {}) {
    const process_mark mark;
    auto spec = shell(script, mark);
    if (!argv.empty())
      spec.argv = argv;
    spec.cwd = workspace + below;
    spec.max_open_files = open_files;
    spec.environment.emplace_back("HOME", dir.file("person"));
    if (!path.empty())
      std::erase_if(spec.environment, [](const auto& v) { return v.first == "PATH"; });
    if (!path.empty())
      spec.environment.emplace_back("PATH", path);
    exec::run_identity who;
    who.home = home;
    who.kernel_home = workspace;
    who.agent_id = "worker";
    who.dispatch_id = "d1";
    exec::sandbox_places places{{workspace}, {}, {home, key}, {workspace + "/.git"}};
    const auto confined = exec::confine(spec, settings, adapters::probe_sandbox(), places, who);
    REQUIRE(confined.has_value());
    report = queue::to_json(*confined);
    recorder seen;
    REQUIRE(runner->start(spec, seen.events()).has_value());
    REQUIRE(seen.wait());
    out = seen.out();
    trouble = seen.exit().start_error + seen.err();
    CHECK(mark.living() == 0);
    return seen.exit();
  }

  std::string says(const std::string& script) {
    std::string out;
    const auto end = run("exec 2>&1; " + script, out);
    INFO(report);
    CHECK(trouble == "");
    return out;
  }
};

std::string name_of(sandbox_kind kind) {
  return kind == sandbox_kind::bubblewrap ? "bwrap" : "landlock";
}

/// For every kind that confines files.
template <class Test>
void with_each_kind(const std::string& what, Test test, bool by_mounts = false) {
  for (const auto kind : {sandbox_kind::landlock, sandbox_kind::bubblewrap}) {
    if (skipped(kind, what + ", " + name_of(kind), by_mounts))
      continue;
    DYNAMIC_SECTION(name_of(kind)) {
      fixture f(kind);
      test(f);
      CHECK(f.report.find("\"mode\":\"" + name_of(kind) + "\"") != std::string::npos);
    }
  }
}

} // namespace

TEST_CASE(
    "fd-exhaustion: a sandbox that a program's own limit leaves no descriptor is no shortage of "
    "the system's") {
  if (skipped(sandbox_kind::landlock, "a sandbox without a descriptor"))
    return;
  fixture f(sandbox_kind::landlock);
  f.open_files = 3;
  std::string out;
  const auto end = f.run("echo ran", out);
  INFO(end.start_error);
  CHECK_FALSE(end.started);
  CHECK(end.start_errno == EMFILE);
  CHECK(end.own_limits);
  CHECK(out.empty());
}

TEST_CASE("sandbox: a program writes in its workspace and nowhere else", "[sandbox]") {
  with_each_kind("writes outside", [](fixture& f) {
    const auto outside = f.dir.file("outside");
    CHECK(f.says("echo here > note && mkdir -p a/b && mv note a/b/ && cat a/b/note") == "here\n");
    CHECK(f.says("echo x > \"$TMPDIR/t\" && cat \"$TMPDIR/t\"") == "x\n");
    f.says("echo changed > " + outside + "; echo new > " + f.dir.file("new") + "; rm " + outside +
           "; mv " + outside + " .; truncate -s 0 " + outside + "; chmod 777 /etc/passwd; true");
    CHECK(std::ifstream(outside).get() == 'm');
    CHECK_FALSE(std::filesystem::exists(f.dir.file("new")));
    f.says("echo x > " + f.home + "/run/planted; echo x >> " + f.home + "/boyd.yaml; true");
    CHECK_FALSE(std::filesystem::exists(f.home + "/run/planted"));
    CHECK(std::filesystem::file_size(f.home + "/boyd.yaml") == 11);
  });
}

TEST_CASE("sandbox: the node's configuration, database and keys cannot be read", "[sandbox]") {
  with_each_kind("reads of the home", [](fixture& f) {
    CHECK(f.says("cat " + f.home + "/boyd.yaml " + f.home + "/boyd.db " + f.key +
                 " 2>/dev/null; ls " + f.home + "/run 2>/dev/null | grep -v tmp; true")
              .empty());
    // Under another name neither.
    CHECK(f.says("ln -s " + f.home + "/boyd.db l; ln " + f.home +
                 "/boyd.db h 2>/dev/null; cat l h 2>/dev/null; cat /proc/self/root" + f.home +
                 "/boyd.db 2>/dev/null; true")
              .empty());
    // Nor of another process.
    CHECK(f.says("cat /proc/" + std::to_string(::getpid()) + "/environ /proc/" +
                 std::to_string(::getpid()) + "/cwd/x 2>/dev/null; true")
              .empty());
  });
}

TEST_CASE("sandbox: a workspace above the home leaves the home closed", "[sandbox]") {
  with_each_kind("a workspace above the home", [](fixture& f) {
    std::string out;
    auto above = f.dir.path();
    auto spec = shell("cat mine/x; cat home/boyd.db 2>/dev/null; echo y > mine/y; "
                      "echo z > home/z 2>/dev/null; cat home/z 2>/dev/null; true");
    std::filesystem::create_directories(above + "/mine");
    write(above + "/mine/x", "x");
    spec.cwd = above;
    exec::run_identity who;
    who.home = f.home;
    who.dispatch_id = "d2";
    REQUIRE(exec::confine(spec, f.settings, adapters::probe_sandbox(),
                          {{above}, {}, {f.home, f.key}}, who)
                .has_value());
    recorder seen;
    REQUIRE(f.runner->start(spec, seen.events()).has_value());
    REQUIRE(seen.wait());
    CHECK(seen.exit().started);
    CHECK(std::filesystem::exists(above + "/mine/y"));
    CHECK_FALSE(std::filesystem::exists(f.home + "/z"));
    CHECK(seen.out().find("rows") == std::string::npos);
    f.says("true");
  });
}

TEST_CASE("case R3: the node's own process is out of reach, however it is named", "[sandbox]") {
  with_each_kind("calls on the node", [](fixture& f) {
    const process_mark mark;
    recorder seen;
    const auto started = f.runner->start(shell("exec sleep 600", mark), seen.events());
    REQUIRE(started.has_value());
    REQUIRE(wait_until([&] { return mark.living() == 1; }));
    const auto read = [](const std::string& name) {
      std::ifstream in("/proc/self/" + name);
      return std::string((std::istreambuf_iterator<char>(in)), {});
    };
    const auto limits = read("limits");
    const auto self = std::to_string(::getpid());
    const auto nice = ::getpriority(PRIO_PROCESS, 0);
    f.says("prlimit --pid " + self + " --fsize=1 --nofile=3; renice 19 -p " + self +
           "; renice 19 -u " + std::to_string(::geteuid()) + "; ionice -c3 -p " + self +
           "; taskset -p 1 " + self + "; chrt -b -p 0 " + self + "; true");
    CHECK(read("limits") == limits);
    CHECK(::getpriority(PRIO_PROCESS, 0) == nice);
    // Its own it may set.
    CHECK(
        f.says(
            "ulimit -n 32 && ulimit -n; nice -n 5 echo nice; "
            "echo 'echo ran' > s && chmod +x s && ./s; sleep 60 & kill $! && wait $! 2>/dev/null; "
            "echo $?") == "32\nnice\nran\n143\n");
    f.says("kill -9 -1; true");
    f.says("kill -9 " + std::to_string(::getpid()) + "; true");
    CHECK(mark.living() == 1);
    f.runner->signal(*started, SIGKILL);
    REQUIRE(seen.wait());
  });
}

TEST_CASE(
    "case R3: modes of the home cannot be changed, in Landlock with mounts of its own neither",
    "[sandbox]") {
  const auto kind = GENERATE(sandbox_kind::bubblewrap, sandbox_kind::landlock);
  if (skipped(kind, "chmod of the home", true))
    return;
  fixture f(kind);
  if (kind == sandbox_kind::bubblewrap)
    f.settings.mode = mode_t_of::automatic; // it is what a machine that has both takes
  const auto mode_of = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode : 0;
  };
  const auto home = mode_of(f.home);
  const auto rows = mode_of(f.home + "/boyd.db");
  f.says("cd / && chmod 777 " + f.home + " " + f.home + "/run; chmod 0 " + f.home +
         "/boyd.db; touch -d 2001-01-01 " + f.home + "/boyd.yaml; true");
  CHECK(mode_of(f.home) == home);
  CHECK(mode_of(f.home + "/boyd.db") == rows);
  CHECK_THAT(f.report,
             Catch::Matchers::Contains(kind == sandbox_kind::bubblewrap ? "bwrap" : "landlock"));
  CHECK(f.report.find("modes, owners") == std::string::npos);
  // In the workspace it may: its files, and what it made in its temporary directory.
  CHECK(
      f.says("echo 1 > own && chmod 640 own && stat -c %a own && mktemp > t && chmod 600 $(cat t) "
             "&& touch -d 2001-01-01 own && echo fine") == "640\nfine\n");
}

TEST_CASE("case R6: the kernel's settings are not written, by root neither", "[sandbox]") {
  const auto text = [](const std::string& path) {
    std::ifstream in(path);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  const std::string pattern = "/proc/sys/kernel/core_pattern";
  const auto before = text(pattern);
  const std::string attack = "echo '|/bin/false' > " + pattern +
                             "; for f in /proc/sysrq-trigger /proc/irq/default_smp_affinity "
                             "/sys/kernel/mm/ksm/run /sys/fs/cgroup/cgroup.procs; do "
                             "{ echo 0 > $f && echo wrote $f; } 2>/dev/null; done; "
                             "head -c 1 /proc/kcore >/dev/null 2>&1 && [ -s /proc/kcore ] && "
                             "echo read kcore; mount -t tmpfs t /mnt 2>/dev/null && echo mounted; "
                             "mknod m b 8 0 2>/dev/null && echo made; true";
  const auto restore = [&] {
    if (text(pattern) != before)
      std::ofstream(pattern) << before;
  };
  with_each_kind("the kernel's settings", [&](fixture& f) {
    SECTION("as it is") {}
    SECTION("with more than is good granted") {
      f.settings.writable = {"/proc", "/sys", "/proc/sys/kernel"};
    }
    const auto said = f.says("exec 2>/dev/null; " + attack);
    CHECK(said.find("wrote") == std::string::npos);
    CHECK(said == "");
    CHECK(text(pattern) == before);
    restore();
  });
  SECTION("limits alone") {
    const pid_t child = ::fork();
    if (child == 0) {
      if (adapters::enter_sandbox(sandbox_spec{}) != 0)
        ::_exit(101);
      ::execl("/bin/sh", "sh", "-c", ("! echo '|/bin/false' > " + pattern).c_str(), nullptr);
      ::_exit(102);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(text(pattern) == before);
    restore();
  }
}

TEST_CASE("case R6: bubblewrap works where PATH goes through links", "[sandbox]") {
  with_each_kind("links in PATH", [](fixture& f) {
    const auto real = f.dir.file("far/tools-1.2/bin");
    std::filesystem::create_directories(real);
    write(real + "/hello", "#!/bin/sh\necho hello\n");
    std::filesystem::permissions(real + "/hello", std::filesystem::perms::owner_all);
    std::filesystem::create_directory_symlink("far/tools-1.2", f.dir.file("tools"));
    std::filesystem::create_directory_symlink(f.dir.file("tools"), f.dir.file("current"));
    std::filesystem::create_directory_symlink("nowhere", f.dir.file("dangling"));
    f.path = f.dir.file("current/bin") + ":" + f.dir.file("dangling") + ":/bin:/usr/bin";
    CHECK(f.says("hello && ls /usr > /dev/null && echo well") == "hello\nwell\n");
    // A link that somebody made in the workspace opens nothing that is hidden.
    std::filesystem::create_directory_symlink(f.home, f.workspace + "/bin");
    f.path = f.workspace + "/bin:/bin:/usr/bin";
    CHECK(f.says("cat bin/boyd.db " + f.home + "/boyd.db 2>/dev/null; true") == "");
  });
}

TEST_CASE("case R4: the repository of a kernel's home is read-only in each sandbox", "[sandbox]") {
  const auto attack_it = [](fixture& f) {
    const auto git = f.workspace + "/.git";
    std::filesystem::create_directories(git + "/refs/heads");
    write(git + "/HEAD", "ref: refs/heads/main\n");
    write(git + "/refs/heads/main", "0\n");
    const std::string attack =
        "echo x > .git/HEAD; echo x > .git/new; mv .git/refs .git/r; mv .git g; rm -rf .git/refs; "
        "ln -s /tmp .git/refs/heads/x; chmod 777 .git; ln .git/HEAD .git/h; "
        "mv -T new .git; rmdir .git/refs/heads; umount .git; mount -o remount,rw .git; "
        "unshare -rm sh -c 'umount .git; mount -o remount,rw,bind .git; echo x > .git/HEAD'; "
        "cd .git && echo x > HEAD";
    f.says("mkdir new; ( " + attack + " ) 2>/dev/null; true");
    std::string out;
    (void)f.run("echo x > HEAD; echo x > refs/heads/main", out, {}, "/.git");
    CHECK_FALSE(std::filesystem::exists(git + "/new"));
    CHECK(std::filesystem::is_directory(git + "/refs/heads"));
    CHECK(f.says("cat .git/HEAD .git/refs/heads/main; echo 2 > here; cat here; ls .git") ==
          "ref: refs/heads/main\n0\n2\nHEAD\nrefs\n");
    CHECK(f.report.find(".git") == std::string::npos);
  };
  with_each_kind("a read-only .git", attack_it, true);
}

TEST_CASE("case R6: a program that bubblewrap does not execute has not started", "[sandbox]") {
  if (skipped(sandbox_kind::bubblewrap, "bubblewrap's own failures"))
    return;
  fixture f(sandbox_kind::bubblewrap);
  std::string out;
  auto end = f.run("", out, {"no-such-program-anywhere"});
  CHECK_FALSE(end.started);
  CHECK_THAT(end.start_error,
             Catch::Matchers::Contains("bubblewrap did not start no-such-program"));
  CHECK_THAT(f.trouble, Catch::Matchers::Contains("bwrap: "));
  write(f.workspace + "/no-program", "no program\n");
  end = f.run("", out, {f.workspace + "/no-program"});
  CHECK_FALSE(end.started);
  // What the program itself says counts as before.
  for (const int code : {0, 1, 7, 127}) {
    end = f.run("exit " + std::to_string(code), out);
    CHECK(end.started);
    CHECK(end.exit_code == code);
  }
  end = f.run("kill -9 $$", out);
  CHECK(end.started);
  CHECK(end.exit_code == 137);
  f.settings.file_size = 4096;
  f.settings.open_files = 32;
  end = f.run("ls /proc/self/fd | wc -l", out);
  CHECK(end.started);
  CHECK(out == "4\n"); // stdio and ls's own: nothing of Boyd's is left open
}

TEST_CASE("sandbox: what is linked into the workspace stays where it is", "[sandbox]") {
  with_each_kind("links out", [](fixture& f) {
    const auto outside = f.dir.file("outside");
    std::filesystem::create_symlink(outside, f.workspace + "/link");
    std::filesystem::create_directory_symlink(f.dir.path(), f.workspace + "/up");
    // Bubblewrap shows directories above that are nobody's: what is written there is gone.
    CHECK(f.says("{ echo x > link; echo x > up/new; cat link up/outside; ln " + outside +
                 " hard; cat hard; } 2>/dev/null; true")
              .find("mine") == std::string::npos);
    CHECK(std::filesystem::file_size(outside) == 4);
    CHECK_FALSE(std::filesystem::exists(f.dir.file("new")));
  });
}

TEST_CASE("sandbox: git, python3, node and sh work inside", "[sandbox]") {
  with_each_kind("programs", [](fixture& f) {
    CHECK(f.says("git init -q . && echo a > a && git add a && git -c user.name=a "
                 "-c user.email=a@example.org commit -q -m one && git log --oneline | wc -l") ==
          "1\n");
    std::filesystem::create_directories(f.dir.file("person"));
    write(f.dir.file("person/.gitconfig"), "[user]\n name = p\n email = p@example.org\n");
    CHECK(f.says("git config user.name") == "p\n");
    if (::access("/usr/bin/python3", X_OK) == 0)
      CHECK(f.says("python3 -c 'import os,tempfile,json,subprocess; "
                   "print(subprocess.check_output([\"echo\", \"1\"]).decode().strip(), "
                   "tempfile.TemporaryFile().write(b\"x\"))'") == "1 1\n");
    if (::access("/usr/bin/node", X_OK) == 0)
      CHECK(f.says("node -e 'require(\"fs\").writeFileSync(\"n\", \"1\"); "
                   "console.log(require(\"child_process\").execSync(\"cat n\").toString())'") ==
            "1\n");
    CHECK(f.says("mktemp > /dev/null && yes | head -n 2 && cat /dev/zero | head -c 1 | wc -c") ==
          "y\ny\n1\n");
  });
}

TEST_CASE("sandbox: privileges are not gained, whatever the mode", "[sandbox]") {
  if (::geteuid() != 0)
    return tell_skipped("no_new_privs with a setuid program", "only root can make one");
  const auto check = [](fixture& f) {
    const auto program = f.workspace + "/who";
    std::filesystem::copy_file("/usr/bin/id", program);
    constexpr uid_t somebody = 65534;
    REQUIRE(::chown(program.c_str(), somebody, somebody) == 0);
    REQUIRE(::chmod(program.c_str(), 04755) == 0);
    CHECK(f.says("./who -u; grep NoNewPrivs /proc/self/status").find("65534") == std::string::npos);
    CHECK(f.says("grep NoNewPrivs /proc/self/status").find("\t1") != std::string::npos);
    recorder seen; // without a sandbox it works
    REQUIRE(f.runner->start(shell(program + " -u"), seen.events()).has_value());
    REQUIRE(seen.wait());
    CHECK(seen.out() == "65534\n");
  };
  with_each_kind("no_new_privs", check);
}

TEST_CASE("sandbox: limits of resources hold", "[sandbox]") {
  with_each_kind("limits", [](fixture& f) {
    f.settings.file_size = 1u << 20;
    f.settings.open_files = 64;
    // A sanitizer's memory, terabytes of it, is the child's until it is another program.
    if (!sanitized())
      f.settings.memory = 200u << 20;
    std::string out;
    auto end = f.run("dd if=/dev/zero of=big bs=1M count=4 2>/dev/null", out);
    CHECK((end.signal == SIGXFSZ || end.exit_code != 0));
    CHECK(std::filesystem::file_size(f.workspace + "/big") <= (1u << 20));
    CHECK(f.says("ulimit -n; ulimit -c") == "64\n0\n");
    if (f.settings.memory && ::access("/usr/bin/python3", X_OK) == 0) {
      end = f.run("python3 -c 'x = bytearray(400 << 20)' 2>/dev/null", out);
      CHECK(end.exit_code != 0);
    }
    f.settings.cpu = 1s;
    end = f.run("exec sh -c 'while :; do :; done'", out);
    CHECK((end.signal == SIGXCPU || end.signal == SIGKILL || end.exit_code > 128));
  });
}

TEST_CASE("sandbox: a fork bomb ends at the number of processes", "[sandbox]") {
  // Root's processes are not counted, so the test becomes somebody else first.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    constexpr uid_t somebody = 61234;
    // The library's own would wait for threads that this process does not have.
    if (::geteuid() == 0 &&
        (::syscall(SYS_setgid, somebody) != 0 || ::syscall(SYS_setuid, somebody) != 0))
      ::_exit(100);
    sandbox_spec spec;
    spec.limits.processes = ::geteuid() == somebody ? 8 : 4;
    if (adapters::enter_sandbox(spec) != 0)
      ::_exit(101);
    ::signal(SIGTERM, SIG_DFL);
    int made = 0;
    for (; made < 64; ++made) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::pause();
        ::_exit(0);
      }
      if (pid < 0)
        break;
    }
    const bool bounded = made < 10 && errno == EAGAIN;
    ::signal(SIGTERM, SIG_IGN);
    ::kill(0, SIGTERM); // its own group, see below
    ::_exit(bounded ? 0 : 102);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  if (::geteuid() == 0) {
    fixture f(sandbox_kind::landlock);
    f.settings.processes = 10;
    f.says("true");
    CHECK(f.report.find("the process limit does not apply") != std::string::npos);
  }
}

TEST_CASE("sandbox: the node's control socket is out of reach", "[sandbox]") {
  with_each_kind("the control socket", [](fixture& f) {
    const auto path = f.workspace + "/s"; // as near as it gets: the path itself is granted
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(server, 1) == 0);
    if (::access("/usr/bin/python3", X_OK) != 0)
      return tell_skipped("connecting to a local socket", "python3 is not installed");
    const std::string connect =
        "python3 -c 'import socket\ntry:\n  s = socket.socket(socket.AF_UNIX); "
        "s.connect(\"" +
        path + "\"); print(\"in\")\nexcept OSError as e: print(e.errno)'";
    CHECK(f.says(connect) == std::to_string(EACCES) + "\n");
    // Pairs stay: programs talk to their own children through them.
    CHECK(f.says("python3 -c 'import socket; socket.socketpair(); print(1)'") == "1\n");
    f.settings.unix_sockets = true;
    CHECK(f.says(connect) == "in\n");
    ::close(server);
  });
}

TEST_CASE("sandbox: no network when none is asked for", "[sandbox]") {
  with_each_kind("network", [](fixture& f) {
    if (::access("/usr/bin/python3", X_OK) != 0)
      return tell_skipped("connecting to the network", "python3 is not installed");
    const std::string connect =
        "python3 -c 'import socket\nfor kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n"
        "  try:\n    s = socket.socket(socket.AF_INET, kind); s.connect((\"127.0.0.1\", PORT)); "
        "print(\"in\")\n  except OSError as e: print(\"out\")'";
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::listen(server, 4) == 0); // a port of the system's choice
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const auto high = reinterpret_cast<unsigned char*>(&address)[2];
    const auto low = reinterpret_cast<unsigned char*>(&address)[3];
    const auto port = std::to_string(high * 256 + low);
    auto line = connect;
    line.replace(line.find("PORT"), 4, port);
    CHECK(f.says(line) == "in\nin\n");
    f.settings.network = config::sandbox_settings::network_t::none;
    const auto closed = f.says(line);
    CHECK(closed.substr(0, 4) == "out\n");
    if (f.report.find("bwrap") == std::string::npos)
      CHECK(closed == "out\nout\n");
    f.settings.network = config::sandbox_settings::network_t::hosts;
    f.settings.hosts = {"example.org:1"};
    if (f.report.find("bwrap") == std::string::npos && adapters::probe_sandbox().landlock_abi >= 4)
      CHECK(f.says(line).substr(0, 4) == "out\n");
    f.settings.hosts = {"localhost:" + port};
    CHECK(f.says(line).substr(0, 3) == "in\n");
    CHECK(f.report.find("\"network: ") != std::string::npos);
    ::close(server);
  });
}

TEST_CASE("case 51 tool-forks-daemon: one that left its group does not outlive the sandboxed run",
          "[sandbox][case51]") {
  // The fixture looks for survivors by their mark after each run.
  with_each_kind("case 51", [](fixture& f) {
    CHECK(f.says("setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & "
                 "(setsid setsid sleep 600 >/dev/null 2>&1 &) ; echo done") == "done\n");
  });
}

TEST_CASE("sandbox: signals do not reach the node", "[sandbox]") {
  if (skipped(sandbox_kind::landlock, "signals"))
    return;
  if (adapters::probe_sandbox().landlock_abi < 6)
    return tell_skipped("signals", "Landlock before ABI 6");
  fixture f(sandbox_kind::landlock);
  CHECK(f.says("kill -0 " + std::to_string(::getpid()) +
               " 2>/dev/null && echo reached; "
               "sleep 100 & kill $! && echo own") == "own\n");
}

TEST_CASE("sandbox: a program that cannot be confined is not started", "[sandbox]") {
  if (skipped(sandbox_kind::landlock, "a kernel that refuses"))
    return;
  const auto runner = make_runner();
  auto spec = shell("echo ran");
  auto wrong = std::make_shared<sandbox_spec>();
  wrong->kind = sandbox_kind::landlock;
  wrong->landlock_abi = 1;
  wrong->scratch = "/proc/none/of/this";
  spec.sandbox = wrong;
  recorder seen;
  REQUIRE(runner->start(spec, seen.events()).has_value());
  REQUIRE(seen.wait());
  CHECK_FALSE(seen.exit().started);
  CHECK(seen.exit().start_error.starts_with("cannot set up the sandbox for /bin/sh: "));
  CHECK(seen.out().empty());
}

} // namespace boyd::sandbox_test
