#include "src/adapters/posix/home_lock.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace boyd::home_lock_test {

using namespace boyd;
using adapters::home_lock;

namespace {

const utc_time started = parse_rfc3339("2026-02-13T10:00:00Z").value();

result<home_lock> take(const std::string& home, milliseconds patience = 10s) {
  return home_lock::acquire(home, started, "node-1", patience);
}

/// A pipe that a child reads to wait and writes to tell.
struct pipe_pair {
  pipe_pair() { REQUIRE(::pipe(ends) == 0); }
  ~pipe_pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  pipe_pair(const pipe_pair&) = delete;
  pipe_pair& operator=(const pipe_pair&) = delete;

  void tell() const { CHECK(::write(ends[1], "x", 1) == 1); }
  void wait() const {
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 1);
  }

  int ends[2] = {-1, -1};
};

/// A child process that runs `work` and ends with its return value.
pid_t in_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::_exit(work());
  }
  return pid;
}

int end_of(pid_t pid) {
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("the lock names its owner", "[posix][lock]") {
  const test::temp_dir home;
  CHECK_FALSE(adapters::read_home_owner(home.path()).value());
  {
    const auto lock = take(home.path());
    REQUIRE(lock);
    CHECK(lock->descriptor() >= 0);
    const auto owner = adapters::read_home_owner(home.path()).value();
    REQUIRE(owner);
    CHECK(owner->pid == ::getpid());
    CHECK(owner->started_at == started);
    CHECK(owner->node_id == "node-1");
    CHECK(adapters::is_alive(*owner));
  }
  CHECK_FALSE(adapters::read_home_owner(home.path()).value());
  struct ::stat info {};
  REQUIRE(::stat(home.file("run/lock").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0600U);
  REQUIRE(::stat(home.file("run").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700U);
}

TEST_CASE("a second node is refused with the owner's pid and start", "[posix][lock]") {
  const test::temp_dir home;
  const auto first = take(home.path());
  REQUIRE(first);
  const auto second = take(home.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::locked);
  CHECK(second.error().what.find(std::to_string(::getpid())) != std::string::npos);
  CHECK(second.error().what.find("2026-02-13T10:00:00Z") != std::string::npos);
}

TEST_CASE("a home whose lock was removed stays its owner's", "[posix][lock]") {
  const test::temp_dir home;
  {
    const auto mine = take(home.path());
    REQUIRE(mine);
    for (const char* left : {"run/lock", "run"}) {
      std::filesystem::remove_all(home.file(left));
      const auto second = take(home.path());
      REQUIRE_FALSE(second);
      CHECK(second.error().code == errc::locked);
      CHECK_THAT(second.error().what, Catch::Matchers::Contains("run/lock was removed"));
    }
    std::filesystem::remove_all(home.file("run"));
    CHECK(adapters::read_home_owner(home.path()).value());
  }
  CHECK(take(home.path()));
}

TEST_CASE("a home that is gone is missed, one in its place is another", "[posix][lock]") {
  const test::temp_dir dir;
  const auto home = dir.file("home");
  std::filesystem::create_directory(home);
  const auto mine = take(home);
  REQUIRE(mine);
  CHECK_FALSE(mine->is_replaced());
  std::filesystem::remove_all(home);
  CHECK_FALSE(mine->is_replaced());
  std::filesystem::create_directory(home);
  CHECK_FALSE(mine->is_replaced());
  const auto theirs = take(home);
  REQUIRE(theirs);
  CHECK(mine->is_replaced());
  CHECK_FALSE(theirs->is_replaced());
}

TEST_CASE("a lock survives its move and is free after its end", "[posix][lock]") {
  const test::temp_dir home;
  {
    auto first = take(home.path());
    REQUIRE(first);
    const home_lock moved = std::move(*first);
    CHECK_FALSE(take(home.path()));
  }
  CHECK(take(home.path()));
}

TEST_CASE("a killed owner's home is free at once", "[posix][lock]") {
  const test::temp_dir home;
  const pipe_pair taken;
  const pid_t owner = in_child([&] {
    const auto lock = take(home.path());
    if (!lock || ::write(taken.ends[1], "x", 1) != 1) {
      return 1;
    }
    ::pause();
    return 0;
  });
  taken.wait();
  CHECK(take(home.path()).error().code == errc::locked);
  REQUIRE(::kill(owner, SIGKILL) == 0);
  end_of(owner);
  CHECK(take(home.path()));
}

namespace {

/// An owner that dies at once and leaves a helper holding the lock until `release` is told. The
/// helper is this process's grandchild and ends by itself.
void leave_a_helper(const std::string& home, const pipe_pair& release) {
  const pid_t owner = in_child([&] {
    const auto lock = take(home);
    if (!lock) {
      return 1;
    }
    if (::fork() == 0) {
      char byte = 0;
      ::_exit(::read(release.ends[0], &byte, 1) == 1 ? 0 : 1);
    }
    return 0;
  });
  REQUIRE(end_of(owner) == 0);
}

} // namespace

TEST_CASE("the helpers of a dead owner are waited for", "[posix][lock]") {
  const test::temp_dir home;
  const pipe_pair release;
  leave_a_helper(home.path(), release);
  const auto refused = take(home.path(), 0ms);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::locked);
  CHECK(refused.error().what.find("is gone") != std::string::npos);
  std::thread later([&] { release.tell(); });
  const auto lock = take(home.path());
  later.join();
  CHECK(lock);
}

TEST_CASE("a reused pid is not the owner", "[posix][lock]") {
  adapters::lock_owner owner;
  owner.pid = ::getpid();
  CHECK(adapters::is_alive(owner));
  owner.start_ticks = 1;
  CHECK_FALSE(adapters::is_alive(owner));
  const pid_t gone = in_child([] { return 0; });
  REQUIRE(end_of(gone) == 0);
  owner.pid = gone;
  CHECK_FALSE(adapters::is_alive(owner));
}

TEST_CASE("links in place of home, run or lock are refused", "[posix][lock]") {
  namespace fs = std::filesystem;
  const test::temp_dir dir;
  fs::create_directory(dir.file("real"));
  fs::create_directory(dir.file("elsewhere"));
  const auto real = dir.file("real");
  SECTION("home") {
    fs::create_directory_symlink(real, dir.file("link"));
    CHECK(take(dir.file("link")).error().code == errc::refused);
    CHECK(fs::is_empty(real));
  }
  SECTION("run") {
    fs::create_directory_symlink(dir.file("elsewhere"), real + "/run");
    CHECK(take(real).error().code == errc::refused);
    CHECK(fs::is_empty(dir.file("elsewhere")));
  }
  SECTION("lock") {
    fs::create_directory(real + "/run");
    std::ofstream(dir.file("victim")) << "precious";
    fs::create_symlink(dir.file("victim"), real + "/run/lock");
    CHECK(take(real).error().code == errc::refused);
    CHECK(fs::file_size(dir.file("victim")) == 8);
  }
  SECTION("hard link") {
    fs::create_directory(real + "/run");
    std::ofstream(dir.file("victim")) << "precious";
    fs::create_hard_link(dir.file("victim"), real + "/run/lock");
    CHECK(take(real).error().code == errc::refused);
    CHECK(fs::file_size(dir.file("victim")) == 8);
  }
  SECTION("no directory at all") {
    CHECK(take(dir.file("none")).error().code == errc::not_found);
    std::ofstream(dir.file("file")) << "x";
    CHECK(take(dir.file("file")).error().code == errc::refused);
  }
}

TEST_CASE("case 45 wrong-owner: another user's home is refused", "[posix][lock]") {
  if (::geteuid() != 0)
    return test::tell_skipped("case 45, wrong owner", "needs root to give a directory away");
  const test::temp_dir home;
  constexpr uid_t nobody = 65534;
  REQUIRE(::chown(home.path().c_str(), nobody, nobody) == 0);
  const auto lock = take(home.path());
  REQUIRE_FALSE(lock);
  CHECK(lock.error().code == errc::refused);
  CHECK(lock.error().what.find("65534") != std::string::npos);
  test::tell_figure("case 45, wrong owner: " + lock.error().what);
}

TEST_CASE("case 45 read-only-fs: it is refused with the reason", "[posix][lock]") {
  const test::temp_dir home;
  enum { refused, accepted, no_mounts };
  const pid_t child = in_child([&]() -> int {
    // In a mount namespace of its own, so that the mount ends with the child.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", home.path().c_str(), "tmpfs", MS_RDONLY, nullptr) != 0) {
      return no_mounts;
    }
    const auto lock = take(home.path());
    const bool said = !lock && lock.error().code == errc::refused &&
                      lock.error().what.find("read-only") != std::string::npos;
    return said ? refused : accepted;
  });
  const int outcome = end_of(child);
  if (outcome == no_mounts)
    return test::tell_skipped("case 45, read-only file system", "may not mount");
  CHECK(outcome == refused);
  test::tell_figure("case 45, read-only file system: refused, a real mount of one");
}

TEST_CASE("case 45 network file system: what cannot be mounted here is known by its kind",
          "[posix][lock]") {
  using adapters::is_network_file_system;
  CHECK(is_network_file_system(0x6969));                         // NFS
  CHECK(is_network_file_system(static_cast<int>(0xFF534D42)));   // CIFS, as 32 bits give it
  CHECK(is_network_file_system(static_cast<long>(0xFE534D42L))); // SMB2
  CHECK(is_network_file_system(0x517B));                         // SMB
  CHECK(is_network_file_system(0x5346414F));                     // AFS
  CHECK_FALSE(is_network_file_system(0xEF53));                   // ext4
  CHECK_FALSE(is_network_file_system(0x58465342));               // XFS
  CHECK_FALSE(is_network_file_system(0x9123683E));               // btrfs
  CHECK_FALSE(is_network_file_system(0x01021994));               // tmpfs
  CHECK_FALSE(is_network_file_system(0x794C7630));               // overlayfs
}

TEST_CASE("a garbled lock file hinders nobody", "[posix][lock]") {
  const test::temp_dir home;
  std::filesystem::create_directory(home.file("run"));
  std::ofstream(home.file("run/lock")) << "{\"pid\": \"x\"";
  CHECK(take(home.path()));
}

} // namespace boyd::home_lock_test
