#include "integration/git/fixture.hpp"
#include "src/adapters/libgit2/locks_internal.hpp"
#include "support/heard_log.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"

#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace boyd::locks_test {

using namespace boyd;
using namespace boyd::test;
using adapters::git::index_lock;

namespace {

const std::vector<std::string> every_lock{"index.lock",           "HEAD.lock",
                                          "packed-refs.lock",     "config.lock",
                                          "refs/heads/main.lock", "refs/heads/a/b.lock"};

/// Two minutes old: past limits::stale_lock_age.
void make_old(const std::string& path) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= 120;
  const timespec times[2] = {now, now};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

/// The files that wait to become locks.
std::vector<std::string> spare_locks_of(const git_home& h) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(h.file(".git")))
    if (entry.path().filename().string().rfind("boyd-lock-", 0) == 0)
      out.push_back(entry.path().string());
  return out;
}

/// What a node leaves that is killed between taking its locks and moving the branch.
void die_holding_locks(const git_home& h) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto lock = index_lock::acquire(h.path, h.file(".git"), 100ms);
    bool made = true;
    for (const char* name : {"refs/heads/main.lock", "packed-refs.lock"})
      made = ::open(h.file(std::string(".git/") + name).c_str(), O_CREAT | O_WRONLY, 0600) >= 0 &&
             made;
    ::_exit(lock && made ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

} // namespace

TEST_CASE("case 41 stale-git-locks: the locks of a dead node are removed at once") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  die_holding_locks(h);
  REQUIRE(exists(h.file(".git/index.lock")));
  REQUIRE(exists(h.file(".git/refs/heads/main.lock")));
  put(h.file("a"), "2");
  const boyd::test::heard_log log;
  SECTION("at the next opening") {
    REQUIRE(h.provider->open(h.path, h.who));
  }
  SECTION("at the next start") {
    REQUIRE(h.provider->init(h.path, h.who));
  }
  SECTION("at the next commit") {
    REQUIRE(h.commit_all("two"));
  }
  for (const char* name : {"index.lock", "refs/heads/main.lock", "packed-refs.lock"}) {
    INFO(name << "\n" << log.text());
    CHECK_FALSE(exists(h.file(std::string(".git/") + name)));
    CHECK(log.times("removed a leftover git file: " + h.file(std::string(".git/") + name)) == 1);
  }
  CHECK(spare_locks_of(h).size() <= 1); // none of the dead node's
  put(h.file("a"), "3");
  CHECK(h.commit_all("three"));
  h.check_clean();
  h.check_sound();
}

TEST_CASE(
    "case 41 stale-git-locks: old foreign locks that nobody holds are removed, young ones stay") {
  git_home h;
  for (const auto& name : every_lock) {
    put(h.file(".git/" + name), "");
    INFO(name);
    REQUIRE(h.provider->open(h.path, h.who));
    CHECK(exists(h.file(".git/" + name)));
    make_old(h.file(".git/" + name));
  }
  REQUIRE(h.provider->open(h.path, h.who));
  for (const auto& name : every_lock)
    CHECK_FALSE(exists(h.file(".git/" + name)));
}

TEST_CASE("case 41 stale-git-locks: a lock that a living process has open stays, however old") {
  git_home h;
  const std::string path = h.file(".git/index.lock");
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  REQUIRE(fd >= 0);
  make_old(path);
  REQUIRE(h.provider->open(h.path, h.who));
  CHECK(exists(path));
  CHECK(index_lock::acquire(h.path, h.file(".git"), 1ms).error().code == errc::locked);
  ::close(fd);
  CHECK(index_lock::acquire(h.path, h.file(".git"), 1ms));
  CHECK_FALSE(exists(path));
}

TEST_CASE("case 41 stale-git-locks: an old lock stays while a person's git works there") {
  git_home h;
  put(h.file(".git/index.lock"), "");
  make_old(h.file(".git/index.lock"));
  // `git cat-file --batch` waits for its input, as `git commit` waits for an editor.
  FILE* git = ::popen(("cd '" + h.path + "' && exec git cat-file --batch >/dev/null").c_str(), "w");
  REQUIRE(git != nullptr);
  bool seen = false;
  // Until the shell has become git; bounded by the test's own timeout.
  while (!seen)
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code ec;
      const auto cwd = std::filesystem::read_symlink(entry.path() / "cwd", ec);
      if (!ec && cwd == h.path && get((entry.path() / "comm").string()) == "git\n")
        seen = true;
    }
  CHECK(index_lock::acquire(h.path, h.file(".git"), 1ms).error().code == errc::locked);
  CHECK(exists(h.file(".git/index.lock")));
  ::pclose(git);
  CHECK(index_lock::acquire(h.path, h.file(".git"), 1ms));
}

TEST_CASE("a held lock is waited for") {
  git_home h;
  auto held =
      std::make_unique<result<index_lock>>(index_lock::acquire(h.path, h.file(".git"), 100ms));
  REQUIRE(*held);
  CHECK(index_lock::acquire(h.path, h.file(".git"), 1ms).error().code == errc::locked);
  CHECK(exists(h.file(".git/index.lock")));
  held.reset();
  put(h.file("a"), "1");
  CHECK(h.commit_all("one"));
}

TEST_CASE("every lock of a node is the same file, which goes with the last that uses it") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  const auto first = spare_locks_of(h);
  REQUIRE(first.size() == 1);
  // However old it is, it stays while its process lives.
  make_old(first[0]);
  REQUIRE(h.provider->open(h.path, h.who)); // and goes when this one is closed
  put(h.file("a"), "2");
  REQUIRE(h.commit_all("two"));
  const auto second = spare_locks_of(h);
  REQUIRE(second.size() == 1);
  make_old(second[0]);
  adapters::git::recover_locks(h.path, h.file(".git"));
  CHECK(spare_locks_of(h) == second);
  {
    // A lock is as old as its taking: locks made under it are judged by that.
    const auto lock = index_lock::acquire(h.path, h.file(".git"), 100ms);
    REQUIRE(lock);
    CHECK(spare_locks_of(h) == second);
    struct stat info {};
    REQUIRE(::stat(h.file(".git/index.lock").c_str(), &info) == 0);
    CHECK(std::time(nullptr) - info.st_mtim.tv_sec < 60);
    CHECK(get(h.file(".git/index.lock")).rfind("boyd ", 0) == 0);
  }
  std::filesystem::remove(second[0]); // somebody tidied up
  put(h.file("a"), "3");
  REQUIRE(h.commit_all("three"));
  h.repo.reset();
  CHECK(spare_locks_of(h).empty());
  h.check_sound();
}

TEST_CASE("case 41 stale-git-locks: all waits for the locks of a repository share one patience") {
  using adapters::git::lock_clock;
  adapters::git::lock_patience p(5s, 60s);
  const lock_clock::time_point start{};
  CHECK(p.until(start) == start + 5s);
  CHECK(p.until(start + 3s) == start + 5s);
  CHECK(p.until(start + 64s) == start + 5s); // long spent: nothing is waited for
  CHECK(p.until(start + 65s) == start + 70s);
  p.renew();
  CHECK(p.until(start + 66s) == start + 71s);
}

TEST_CASE("case 41 stale-git-locks: several young foreign locks are waited for together, once") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  for (const char* name : {"index.lock", "HEAD.lock", "refs/heads/main.lock"})
    put(h.file(std::string(".git/") + name), "");
  const auto begin = std::chrono::steady_clock::now();
  adapters::git::lock_wait first(h.file(".git"), 10min);
  while (first.again()) {
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  // Of one and not of three.
  CHECK(waited <= boyd::test::at_most<std::chrono::duration<double>>(7s, 14s));
  boyd::test::tell_figure("case 41: three young foreign locks were waited for " +
                          std::to_string(waited.count()) + " s in all");
  // The patience is spent: whatever the node does next there fails at the first look.
  put(h.file("a"), "2");
  CHECK(h.repo->stage({{"a", change_kind::modified}}).error().code == errc::locked);
  CHECK_FALSE(adapters::git::lock_wait(h.file(".git"), 10min).again());
  std::filesystem::remove(h.file(".git/index.lock"));
  CHECK(h.repo->commit({{"a", change_kind::modified}}, "two", at(noon)).error().code ==
        errc::locked);
  CHECK_FALSE(adapters::git::lock_wait(h.file(".git"), 10min).again());
  std::filesystem::remove(h.file(".git/HEAD.lock"));
  std::filesystem::remove(h.file(".git/refs/heads/main.lock"));
  CHECK(h.commit_all("three"));
  // A commit has got through: the next lock is waited for.
  CHECK(adapters::git::lock_wait(h.file(".git"), 10min).again());
}

TEST_CASE("old temporary objects and packs go, young ones stay") {
  git_home h;
  const std::vector<std::string> names{"objects/tmp_object_git2_aaaaaa", "objects/ab/tmp_obj_x",
                                       "objects/pack/tmp_pack_x",        "objects/pack/pack_git2_x",
                                       "objects/pack/pack-orphan.idx",   "boyd-lock-aaaaaa"};
  for (const auto& name : names)
    put(h.file(".git/" + name), "x");
  REQUIRE(h.provider->open(h.path, h.who));
  for (const auto& name : names) {
    INFO(name);
    CHECK(exists(h.file(".git/" + name)));
    make_old(h.file(".git/" + name));
  }
  REQUIRE(h.provider->open(h.path, h.who));
  for (const auto& name : names)
    CHECK_FALSE(exists(h.file(".git/" + name)));
}

TEST_CASE("a torn index is made again, and nothing of HEAD is lost") {
  git_home h;
  put(h.file("a"), "1\n");
  put(h.file("b"), "1\n");
  REQUIRE(h.commit_all("one"));
  const std::string whole = get(h.file(".git/index"));
  SECTION("empty") {
    put(h.file(".git/index"), "");
  }
  SECTION("cut") {
    put(h.file(".git/index"), whole.substr(0, whole.size() / 2));
  }
  SECTION("zeros") {
    put(h.file(".git/index"), std::string(whole.size(), '\0'));
  }
  SECTION("missing") {
    std::filesystem::remove(h.file(".git/index"));
  }
  CHECK(h.repo->changes().value().empty());
  put(h.file("a"), "2\n");
  REQUIRE(h.commit_all("two"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "a\nb\n");
  h.check_clean();
  h.check_sound();
}

TEST_CASE("case 41 stale-git-locks: a repository moved away in mid-commit works at once when it is "
          "back") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  const std::string away = h.root.file("away");
  const std::string ref_lock = h.file(".git/refs/heads/main.lock");
  {
    const auto lock = index_lock::acquire(h.path, h.file(".git"), 100ms);
    REQUIRE(lock);
    put(ref_lock, "half");
    std::filesystem::rename(h.file(".git"), away);
  }
  std::filesystem::rename(away, h.file(".git"));
  REQUIRE(exists(h.file(".git/index.lock")));
  put(h.file("a"), "2");
  CHECK(h.commit_all("two"));
  CHECK_FALSE(exists(h.file(".git/index.lock")));
  CHECK_FALSE(exists(ref_lock));
  h.check_clean();
  h.check_sound();
}

TEST_CASE("case 41 stale-git-locks: releasing a lock never removes the one of a repository in its "
          "place") {
  git_home h;
  const std::string away = h.root.file("away");
  {
    const auto lock = index_lock::acquire(h.path, h.file(".git"), 100ms);
    REQUIRE(lock);
    std::filesystem::rename(h.file(".git"), away);
    put(h.file(".git/index.lock"), "a person's");
  }
  CHECK(get(h.file(".git/index.lock")) == "a person's");
}

TEST_CASE(
    "case 41 stale-git-locks: what another thread of this node holds is waited for, not removed") {
  git_home h;
  const auto held = index_lock::acquire(h.path, h.file(".git"), 100ms);
  REQUIRE(held);
  std::thread other([&] {
    adapters::git::recover_locks(h.path, h.file(".git"));
    const auto refused = index_lock::acquire(h.path, h.file(".git"), 1ms);
    CHECK_FALSE(refused);
  });
  other.join();
  CHECK(exists(h.file(".git/index.lock")));
}

} // namespace boyd::locks_test
