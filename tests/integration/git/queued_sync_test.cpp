#include "integration/git/fixture.hpp"
#include "integration/git/stepper.hpp"
#include "src/adapters/unique_fd.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <libaio.h>
#include <set>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace boyd::queued_sync_test {

using namespace boyd;
using namespace boyd::test;
using adapters::unique_fd;

namespace {

constexpr int none = -1;
/// More answers than a commit asks for.
constexpr int most = 200;

/// What the kernel's queue of requests is to answer in this program: one answer, from 0, is EIO, or
/// the call that asks for it fails. What was not synced by that is looked at afterwards.
struct script {
  int failing = none;
  int lost = none;
  int seen = 0;                      ///< answers so far
  std::vector<unique_fd> files;      ///< held: nothing else gets their inodes
  std::set<std::string> directories; ///< not synced since
};

script queue;
/// Other tests of this program commit in several threads: then nothing is noted.
std::atomic<bool> noting{false};

std::string path_of(int fd) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), gone).string();
}

bool is_directory(int fd) {
  struct ::stat info {};
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

void failed(int fd) {
  if (is_directory(fd))
    queue.directories.insert(path_of(fd));
  else
    queue.files.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void synced(int fd) {
  if (is_directory(fd))
    queue.directories.erase(path_of(fd));
}

/// Whether what was not synced is of any use to whoever relies on the commit: a file that is still
/// there, or a directory that nobody has asked about again.
bool relies_on_what_failed() {
  return !queue.directories.empty() || std::ranges::any_of(queue.files, [](const unique_fd& file) {
    struct ::stat info {};
    return ::fstat(file.get(), &info) != 0 || info.st_nlink > 0;
  });
}

/// One failure after the other in a commit: it is not made, or made of what was written anew; and
/// when it was not, the next one takes the change. How many there were.
int fail_each(int script::*which) {
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int anew = 0;
  for (int n = 0; n < most; ++n) {
    const std::string name = "n" + std::to_string(n);
    put(h.file("STATE.md"), name + "\n");
    queue = {};
    queue.*which = n;
    noting = true;
    const auto done = h.repo->commit({{"STATE.md", change_kind::modified}}, name, at(noon));
    noting = false;
    const bool reached = queue.seen > n;
    const bool relies = done && relies_on_what_failed();
    queue = {};
    INFO("answer " << n);
    if (!reached) {
      REQUIRE(done);
      h.check_sound();
      tell_figure("case 34: " + std::to_string(n) +
                  " queued fsyncs of a commit failed, each once; " + std::to_string(anew) +
                  " commits were written anew, 0 relied on what failed");
      return n;
    }
    REQUIRE(promised(!relies, "a commit relies on a file or a name whose fsync failed"));
    anew += done ? 1 : 0;
    if (!done)
      REQUIRE(h.commit_all(name));
    REQUIRE(h.subjects().front() == name);
  }
  return most;
}

} // namespace

} // namespace boyd::queued_sync_test

/// Before libaio's and the C library's own: the program asks by these names.
extern "C" int io_getevents(io_context_t context, long least, long wanted, io_event* ends,
                            timespec* limit) {
  using namespace boyd::queued_sync_test;
  const auto got =
      static_cast<int>(::syscall(SYS_io_getevents, context, least, wanted, ends, limit));
  if (got < 0 || !noting)
    return got < 0 ? -errno : got;
  const int first = queue.seen;
  queue.seen += got;
  const bool lost = queue.lost >= first && queue.lost < queue.seen;
  for (int i = 0; i < got; ++i) {
    const int fd = ends[i].obj->aio_fildes;
    const bool fails = first + i == queue.failing;
    if (fails)
      ends[i].res = static_cast<unsigned long>(-static_cast<long>(EIO));
    fails || lost ? failed(fd) : synced(fd);
  }
  return lost ? -EINVAL : got;
}

extern "C" int fsync(int fd) {
  const auto code = static_cast<int>(::syscall(SYS_fsync, fd));
  if (code == 0 && boyd::queued_sync_test::noting)
    boyd::queued_sync_test::synced(fd);
  return code;
}

namespace boyd::queued_sync_test {

TEST_CASE("case 34 eio-fsync-once: a queued fsync that fails is never called success") {
  const int n = fail_each(&script::failing);
  // The bytes of a blob, a tree and a commit, the index and the branch; then the objects' names.
  CHECK(n >= 6);
  CHECK(n < most);
}

TEST_CASE("case 34 eio-fsync-once: a queued fsync whose answer is lost counts as failed") {
  const int n = fail_each(&script::lost);
  CHECK(n >= 6);
  CHECK(n < most);
}

TEST_CASE("a stepped child has no queue: each of its fsyncs is a call that can be refused") {
  // Made by git: a queue of this process would be of no use to the child, and hide what is shown
  // when this test runs alone.
  const temp_dir root;
  const auto home = root.file("home");
  REQUIRE(shell(root.path(), "git init -q -b main home && cd home && git config user.name n && "
                             "git config user.email n@example.org && echo start > STATE.md && "
                             "git add STATE.md && git commit -qm start && echo more > STATE.md")
              .exit_code == 0);
  int syncs = 0;
  const auto run = run_stepped(
      [&] {
        auto repo = adapters::make_git_repositories()->open(home, {});
        return repo && (*repo)->commit({{"STATE.md", change_kind::modified}}, "more", at(noon)) ? 0
                                                                                                : 1;
      },
      [&](const disk_step& step) {
        syncs += step.sync ? 1 : 0;
        return step_choice::go;
      });
  if (!run.possible)
    return tell_skipped("the fsyncs of a commit", "tracing a child process is not permitted");
  CHECK(run.exit_code == 0);
  // As above, and the branch's directory.
  CHECK(syncs >= 7);
}

} // namespace boyd::queued_sync_test
