#include "boyd/ports/worktrees.hpp"
#include "integration/git/fixture.hpp"
#include "src/adapters/libgit2/kept_patch.hpp"
#include "src/adapters/libgit2/worktrees.hpp"
#include "support/wait.hpp"

#include <future>
#include <sys/stat.h>

namespace boyd::worktree_test {

using namespace boyd;
using namespace boyd::test;
namespace fs = std::filesystem;

namespace {

/// Somebody's repository, and worktrees of it.
struct bench {
  temp_dir root;
  std::string repo = root.file("repo");
  std::shared_ptr<worktrees> trees = adapters::make_worktrees();

  bench() {
    fs::create_directories(repo);
    put(repo + "/a.txt", "one\ntwo\nthree\n");
    put(repo + "/sub/b.txt", "b\n");
    put(repo + "/.gitignore", "*.log\n");
    put(repo + "/run.sh", "#!/bin/sh\n");
    fs::permissions(repo + "/run.sh", fs::perms::owner_exec, fs::perm_options::add);
    git("init -q -b main .");
    git("add -A");
    git("commit -q -m first");
  }

  std::string git(const std::string& arguments) const { return git_in(repo, arguments); }

  static std::string git_in(const std::string& where, const std::string& arguments) {
    const auto done = shell(where, "git -c user.name=p -c user.email=p@example.org " + arguments);
    INFO(arguments << ": " << done.text);
    REQUIRE(done.exit_code == 0);
    return done.text;
  }

  worktree_order order(const std::string& name) const {
    return {repo, "HEAD", root.file("home/run/worktrees/" + name), "boyd/a/" + name,
            root.file("home/executions/" + name + "/patch.diff")};
  }

  result<worktree_made> make(const worktree_order& o) const {
    std::promise<result<worktree_made>> told;
    trees->make(o, [&](result<worktree_made> r) { told.set_value(std::move(r)); });
    return told.get_future().get();
  }

  result<worktree_change> close(const worktree_order& o, const std::string& base) const {
    std::promise<result<worktree_change>> told;
    trees->close(o, base, [&](result<worktree_change> r) { told.set_value(std::move(r)); });
    return told.get_future().get();
  }

  std::string made(const worktree_order& o) const {
    const auto r = make(o);
    INFO((r ? std::string() : to_string(r.error())));
    REQUIRE(r);
    return r->base;
  }

  worktree_change closed(const worktree_order& o, const std::string& base) const {
    const auto r = close(o, base);
    INFO((r ? std::string() : to_string(r.error())));
    REQUIRE(r);
    return *r;
  }

  /// Nothing of a worktree is left in the repository.
  void check_clean() const {
    CHECK(git("worktree list").find("run/worktrees") == std::string::npos);
    CHECK(git("branch --list 'boyd/*'").empty());
    CHECK(git("status --porcelain").empty());
    CHECK(git("fsck --strict --no-dangling").find("error") == std::string::npos);
  }
};

} // namespace

TEST_CASE("worktree: references that changed meanwhile are told, those of runs are not",
          "[worktree]") {
  const bench b;
  b.git("tag old");
  b.git("branch gone");
  auto o = b.order("d1");
  const auto first = b.make(o);
  REQUIRE(first);
  REQUIRE(first->references);
  o.references = first->references;
  b.git("branch boyd/other/x");
  SECTION("none") {
    const auto change = b.closed(o, first->base);
    CHECK(change.moved == 0);
    CHECK(change.moved_references.empty());
  }
  SECTION("made, moved and gone") {
    put(o.path + "/a.txt", "one\n");
    bench::git_in(o.path, "commit -q -a -m second");
    bench::git_in(o.path, "update-ref refs/heads/main HEAD");
    bench::git_in(o.path, "replace HEAD~1 HEAD");
    b.git("branch -D gone");
    const auto change = b.closed(o, first->base);
    CHECK(change.moved == 3);
    CHECK(change.has_commits);
    REQUIRE(change.moved_references.size() == 3);
    CHECK(change.moved_references[0] == "refs/heads/main");
    CHECK(change.moved_references[1].starts_with("refs/replace/"));
    CHECK(change.moved_references[2] == "refs/heads/gone");
  }
}

TEST_CASE("worktree: what a run changes becomes a patch that applies", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  CHECK(base + "\n" == b.git("rev-parse HEAD"));
  CHECK(get(o.path + "/a.txt") == "one\ntwo\nthree\n");
  CHECK((fs::status(o.path + "/run.sh").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(bench::git_in(o.path, "rev-parse --abbrev-ref HEAD") == "boyd/a/d1\n");
  CHECK(bench::git_in(o.path, "status --porcelain").empty());
  put(o.path + "/a.txt", "one\n2\nthree\n");
  put(o.path + "/new/c.txt", "c\nd\n");
  put(o.path + "/noise.log", "ignored\n");
  put(o.path + "/blob", std::string("\0\1\2", 3));
  fs::remove(o.path + "/sub/b.txt");
  const auto change = b.closed(o, base);
  CHECK(change.files == 4);
  CHECK(change.added == 3);
  CHECK(change.removed == 2);
  CHECK_FALSE(change.cut);
  const auto whole = get(o.patch);
  const auto heading = read_patch_heading(whole);
  REQUIRE(heading);
  CHECK(adapters::is_whole_patch(*heading, whole));
  CHECK_FALSE(adapters::is_whole_patch(*heading, whole.substr(0, whole.size() - 1)));
  CHECK_FALSE(change.has_commits);
  CHECK(fs::file_size(o.patch) == change.patch_bytes);
  CHECK((fs::status(o.patch).permissions() & fs::perms::group_all) == fs::perms::none);
  CHECK_FALSE(fs::exists(o.path));
  b.check_clean();
  b.git("apply --index '" + o.patch + "'");
  CHECK(get(b.repo + "/a.txt") == "one\n2\nthree\n");
  CHECK(get(b.repo + "/new/c.txt") == "c\nd\n");
  CHECK(get(b.repo + "/blob") == std::string("\0\1\2", 3));
  CHECK_FALSE(fs::exists(b.repo + "/sub/b.txt"));
}

TEST_CASE("worktree: whoever wants to know is told whether a patch holds a secret", "[worktree]") {
  const bench b;
  std::string seen;
  for (const auto* word : {"swordfish", "salmon"}) {
    auto o = b.order(word);
    o.holds_secret = [&](const std::string& patch) {
      seen = patch;
      return patch.find("swordfish") != std::string::npos;
    };
    const auto base = b.made(o);
    put(o.path + "/a.txt", std::string(word) + "\n");
    CHECK(b.closed(o, base).has_secret == (std::string_view(word) == "swordfish"));
    CHECK(seen == get(o.patch));
  }
}

TEST_CASE("worktree: nothing changed leaves no patch", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  put(o.patch, "of an earlier attempt");
  const auto base = b.made(o);
  const auto change = b.closed(o, base);
  CHECK(change.files == 0);
  CHECK_FALSE(fs::exists(o.patch));
  b.check_clean();
}

TEST_CASE("worktree: commits of a run are in the patch, and their branch stays", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  put(o.path + "/a.txt", "committed\n");
  bench::git_in(o.path, "commit -q -a -m work");
  put(o.path + "/later.txt", "not committed\n");
  const auto change = b.closed(o, base);
  CHECK(change.files == 2);
  CHECK(change.has_commits);
  CHECK(b.git("log -1 --format=%s boyd/a/d1") == "work\n");
  CHECK(b.git("worktree list").find("/d1 ") == std::string::npos);
}

TEST_CASE("worktree: several stand side by side, from any revision", "[worktree]") {
  const bench b;
  put(b.repo + "/a.txt", "changed, not committed\n");
  auto one = b.order("d1");
  auto two = b.order("d2");
  two.base = "main~0";
  const auto base = b.made(one);
  CHECK(b.made(two) == base);
  CHECK(get(two.path + "/a.txt") == "one\ntwo\nthree\n");
  put(one.path + "/a.txt", "1\n");
  put(two.path + "/a.txt", "2\n");
  CHECK(b.closed(one, base).files == 1);
  CHECK(get(two.path + "/a.txt") == "2\n");
  CHECK(b.closed(two, base).files == 1);
  CHECK(get(b.repo + "/a.txt") == "changed, not committed\n");
}

TEST_CASE("worktree: what cannot be is refused, and nothing stays of it", "[worktree]") {
  const bench b;
  auto o = b.order("d1");
  o.base = "no-such-branch";
  CHECK(b.make(o).error().code == errc::not_found);
  o = b.order("d1");
  o.repo = b.root.file("nothing");
  CHECK(b.make(o).error().code == errc::not_found);
  o = b.order("d1");
  o.branch = "boyd/a..b/d1";
  CHECK(b.make(o).error().code == errc::invalid_argument);
  o = b.order("d1");
  put(o.path + "/mine", "x");
  CHECK(b.make(o).error().code == errc::conflict);
  CHECK(get(o.path + "/mine") == "x");
  fs::remove_all(o.path);
  b.git("branch boyd/a/d1");
  CHECK(b.make(o).error().code == errc::conflict);
  b.git("branch -D boyd/a/d1");
  shell(b.root.path(), "git init -q --bare bare.git");
  o.repo = b.root.file("bare.git");
  CHECK(b.make(o).error().code == errc::refused);
  b.check_clean();
}

TEST_CASE("worktree: a run that bends .git leads nowhere else", "[worktree]") {
  const bench b;
  const auto elsewhere = b.root.file("elsewhere");
  put(elsewhere + "/precious.txt", "stays\n");
  bench::git_in(elsewhere, "init -q .");
  const auto o = b.order("d1");
  const auto base = b.made(o);
  put(o.path + "/.git", "gitdir: " + elsewhere + "/.git\n");
  put(b.repo + "/.git/worktrees/d1/gitdir", elsewhere + "/.git\n");
  put(o.path + "/a.txt", "mine\n");
  fs::create_directory_symlink(elsewhere, o.path + "/link");
  const auto change = b.closed(o, base);
  CHECK(change.files == 2); // the link is a link
  CHECK_FALSE(fs::exists(o.path));
  CHECK(get(elsewhere + "/precious.txt") == "stays\n");
}

TEST_CASE("worktree: directories without permissions are removed, too", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  put(o.path + "/cache/deep/file", "x");
  fs::permissions(o.path + "/cache/deep", fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(o.path + "/cache", fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(b.closed(o, base).files == 1);
  CHECK_FALSE(fs::exists(o.path));
}

TEST_CASE("worktree: a patch that is too long is cut and said to be", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  std::string line(1023, 'x');
  line += '\n';
  std::string text;
  for (std::size_t i = 0; i < 7000; ++i)
    text += line;
  for (int i = 0; i < 3; ++i)
    put(o.path + "/big" + std::to_string(i) + ".txt", text);
  const auto change = b.closed(o, base);
  CHECK(change.files == 3);
  CHECK(change.cut);
  CHECK(fs::file_size(o.patch) == change.patch_bytes);
  const auto heading = read_patch_heading(get(o.patch));
  REQUIRE(heading);
  CHECK(change.patch_bytes <= patch_limit + to_text(*heading).size());
  CHECK(heading->bytes > 3 * text.size());
  CHECK(heading->hash.empty());
  CHECK_FALSE(adapters::is_whole_patch(*heading, get(o.patch)));
  // The branch has all of it.
  CHECK(change.not_on_branch.empty());
  CHECK(heading->on_branch);
  CHECK(change.has_commits);
  CHECK(b.git("show boyd/a/d1:big2.txt") == text);
  CHECK(b.git("diff --stat HEAD boyd/a/d1 | wc -l") == "4\n");
  CHECK(b.git("status --porcelain").empty());
}

TEST_CASE("worktree: a large file that is changed a little is on the branch as a whole",
          "[worktree]") {
  const bench b;
  std::string text;
  for (std::size_t i = 0; text.size() < (std::size_t{9} << 20); ++i)
    text += std::to_string(i) + "\n";
  put(b.repo + "/large.txt", text);
  b.git("add large.txt");
  b.git("commit -q -m large");
  const auto o = b.order("d1");
  const auto base = b.made(o);
  put(o.path + "/a.txt", "committed\n");
  bench::git_in(o.path, "commit -q -a -m own");
  // Its branch leads to another one: what it commits there is not Boyd's to move.
  b.git("branch elsewhere boyd/a/d1");
  b.git("symbolic-ref refs/heads/boyd/a/d1 refs/heads/elsewhere");
  const auto before = b.git("rev-parse elsewhere");
  put(o.path + "/large.txt", text + "one more\n");
  fs::remove(o.path + "/sub/b.txt");
  const auto change = b.closed(o, base);
  CHECK(change.cut);
  CHECK(change.not_on_branch.empty());
  CHECK(b.git("rev-parse elsewhere") == before);
  CHECK(b.git("show boyd/a/d1:large.txt") == text + "one more\n");
  CHECK(b.git("show boyd/a/d1:a.txt") == "committed\n");
  CHECK(b.git("ls-tree -r --name-only boyd/a/d1").find("sub/b.txt") == std::string::npos);
  CHECK(b.git("fsck --strict --no-dangling").find("error") == std::string::npos);
}

TEST_CASE("worktree: what a killed node left is kept as a patch and removed", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  put(o.path + "/a.txt", "half done\n");
  const auto folder = b.root.file("home/run/worktrees");
  put(folder + "/torn.boyd", "no note");
  put(folder + "/stray/file", "nobody's");
  // Nobody writes into it: who opened it to read would wait for ever.
  REQUIRE(::mkfifo((folder + "/pipe.boyd").c_str(), 0600) == 0);
  fs::create_symlink(folder + "/pipe.boyd", folder + "/link.boyd");
  {
    const auto next = adapters::make_worktrees(folder);
    REQUIRE(wait_until([&] { return fs::is_empty(folder); }));
  }
  CHECK(get(o.patch).find("+half done") != std::string::npos);
  CHECK(fs::is_empty(folder));
  b.check_clean();
  CHECK(adapters::make_worktrees(b.root.file("none")) != nullptr);
}

TEST_CASE("worktree: runs go on beside the removal of what a killed node left", "[worktree]") {
  bench b;
  const auto folder = b.root.file("home/run/worktrees");
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    const auto name = std::to_string(round);
    b.made(b.order("left-" + name));
    b.trees = adapters::make_worktrees(folder);
    const auto o = b.order("run-" + name);
    const auto base = b.made(o);
    put(o.path + "/a.txt", "changed\n");
    CHECK(b.closed(o, base).files == 1);
    REQUIRE(wait_until([&] { return fs::is_empty(folder); }));
  }
  b.trees.reset();
  b.check_clean();
}

TEST_CASE("worktree: the repository may be gone before the run ends", "[worktree]") {
  const bench b;
  const auto o = b.order("d1");
  const auto base = b.made(o);
  fs::remove_all(b.repo);
  const auto r = b.close(o, base);
  REQUIRE_FALSE(r);
  CHECK(r.error().code == errc::not_found);
  CHECK_FALSE(fs::exists(o.path));
}

} // namespace boyd::worktree_test
