#include "boyd/state/versioned_store.hpp"
#include "integration/git/real_store.hpp"
#include "support/telling.hpp"

#include <set>
#include <sstream>
#include <thread>

namespace boyd::rebase_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// Both of two commits have the same.
const earlier_version as_it_is{"STATE.md",
                               [](const std::string&, const std::string& later) { return later; }};

/// A node's side: cycles, and what a kernel does about the commits that it is owed.
struct cycling_store : real_store {
  std::vector<std::string> owed;
  std::set<std::string> acknowledged;
  int told = 0; ///< commits of which it was said that they are lost

  static std::string subject(const std::string& id) { return "cycle " + id + ": success"; }

  std::vector<std::string> lost() {
    std::vector<std::string> ids;
    const auto found = store.lost_cycles();
    INFO((found ? std::string() : to_string(found.error())));
    CHECK(found);
    for (const auto& commit : found ? *found : std::vector<commit_info>{})
      ids.push_back(commit.trailers.front().second);
    return ids;
  }

  bool made(const result<std::string>& commit, const std::string& id) {
    if (!commit) {
      INFO(to_string(commit.error()));
      CHECK((commit.error().code == errc::conflict || commit.error().code == errc::locked));
    } else {
      acknowledged.insert(subject(id));
    }
    return commit.has_value();
  }

  bool boundary(const std::string& id) {
    return made(store.commit_cycle("pre-cycle " + id, subject(id), {id, "n1", ""}, as_it_is, false),
                id);
  }

  /// As the kernel: what is owed comes first; in the middle of a person's rebase nothing does.
  void settle() {
    for (const auto& id : lost()) {
      ++told;
      owed.push_back(id);
    }
    while (!owed.empty() && made(store.commit_boundary(subject(owed.front()),
                                                       {owed.front(), "n1", "", "late"}, true),
                                 owed.front()))
      owed.erase(owed.begin());
  }

  void cycle(const std::string& id) {
    put(file("STATE.md"), "after " + id + "\n");
    settle();
    if (!owed.empty() || !boundary(id))
      owed.push_back(id);
  }
};

/// A person who commits, rebases, goes to another branch and back, and gives up what fails: one
/// round, of which $i is the number.
constexpr auto person_script = R"sh(
  export GIT_AUTHOR_NAME=p GIT_AUTHOR_EMAIL=p@p GIT_COMMITTER_NAME=p GIT_COMMITTER_EMAIL=p@p
  try() {
    n=0
    until "$@" >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 3000 ] || { "$@"; git status; exit 1; }; done
  }
  over() {
    # One that found the index locked may leave no more than this.
    [ -e .git/rebase-merge/head-name ] || rm -rf .git/rebase-merge
    [ ! -d .git/rebase-merge ] || git rebase --abort || return 1
    [ "$(git symbolic-ref -q HEAD)" = refs/heads/main ] || git checkout -q -f main
  }
  echo $i > person-$i; try git add person-$i
  try git commit --allow-empty -m "person $i" # the node may have taken the file into a commit of its own
  git rebase --force-rebase --autostash HEAD~3 >/dev/null 2>&1 || try over
  try git reset -q # what was stashed may have come back with a conflict
  if [ $((i % 4)) -eq 0 ]; then
    try git checkout -q -b side-$i; try git checkout -q main; try git gc -q
  fi)sh";

} // namespace

TEST_CASE("case 42 user-git-parallel: no cycle stays without a commit beside a person's rebases") {
  constexpr int rounds = 12;
  constexpr int cycles = 5; // in each; then the person has the repository alone and can end
  cycling_store s;
  for (int i = 0; i < 4; ++i)
    s.cycle("before-" + std::to_string(i));
  for (int round = 1; round <= rounds; ++round) {
    said person;
    std::thread other(
        [&] { person = shell(s.path, "i=" + std::to_string(round) + person_script); });
    for (int i = 0; i < cycles; ++i)
      s.cycle("round-" + std::to_string(round) + "-" + std::to_string(i));
    other.join();
    INFO(person.text);
    REQUIRE(person.exit_code == 0);
  }
  s.cycle("behind");
  s.settle();
  INFO(s.told << " commits were lost and made again");
  CHECK(s.owed.empty());
  CHECK(s.acknowledged.size() == 4 + rounds * cycles + 1);
  // Some were made while the person was on another branch.
  std::set<std::string> standing;
  std::istringstream all(s.git("log --branches --format=%s").text);
  for (std::string line; std::getline(all, line);)
    standing.insert(line);
  for (const auto& subject : s.acknowledged)
    CHECK(
        promised(standing.contains(subject),
                 subject + ": a commit of the node beside a person's rebases is there, or again"));
  for (int i = 1; i <= rounds; ++i)
    CHECK(promised(standing.contains("person " + std::to_string(i)),
                   "a person's commits beside the node's are all there"));
  s.check_sound();
}

TEST_CASE("case 42 user-git-parallel: a rebase that begins under a commit keeps the branch") {
  git_home h;
  put(h.file("STATE.md"), "1\n");
  const auto base = h.commit_all("base");
  put(h.file("STATE.md"), "2\n");
  // Called after the node has looked whether somebody is in the middle of something.
  const earlier_version begins{"STATE.md", [&](const std::string&, const std::string& later) {
                                 put(h.file(".git/rebase-merge/head-name"), "refs/heads/main\n");
                                 return later;
                               }};
  const auto refused = h.repo->commit_two({{"STATE.md", change_kind::modified}}, begins,
                                          "pre-cycle c1", "cycle c1: success", at(noon));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::conflict);
  CHECK(h.git("rev-parse main").text == *base + "\n");
  std::filesystem::remove_all(h.file(".git/rebase-merge"));
  CHECK(h.repo->commit_two({{"STATE.md", change_kind::modified}}, as_it_is, "pre-cycle c1",
                           "cycle c1: success", at(noon)));
  h.check_clean();
  h.check_sound();
}

TEST_CASE("case 42 user-git-parallel: a branch put back right before a commit of the node") {
  cycling_store s;
  for (const auto* id : {"c1", "c2", "c3"})
    s.cycle(id);
  const auto cycle_on_top = [&](const std::string& id) {
    put(s.file("STATE.md"), "after " + id + "\n");
    return s.boundary(id);
  };
  SECTION("the ones that it has no more are told of, though HEAD is the newest of the node's") {
    REQUIRE(s.git("reset -q --soft HEAD~4").exit_code == 0);
    REQUIRE(cycle_on_top("c4"));
    REQUIRE(cycle_on_top("c5"));
    CHECK(s.lost() == std::vector<std::string>{"c2", "c3"});
    CHECK(s.lost().empty());
  }
  SECTION("and one of them is not answered as if it stood") {
    const auto reset = s.git("rev-parse HEAD").text;
    REQUIRE(s.git("reset -q --soft HEAD~4").exit_code == 0);
    REQUIRE(cycle_on_top("c4"));
    REQUIRE(cycle_on_top("c3"));
    CHECK(s.git("rev-parse HEAD").text != reset);
    CHECK(s.git("log --format=%s").text.find("cycle c3: success") != std::string::npos);
    CHECK(s.lost() == std::vector<std::string>{"c2"});
  }
  SECTION("also when the one before it was a commit of its own") {
    REQUIRE(s.git("reset -q --soft HEAD~4").exit_code == 0);
    REQUIRE(s.made(s.store.commit_boundary(s.subject("c4"), {"c4", "n1", "", "late"}, true), "c4"));
    CHECK(s.lost() == std::vector<std::string>{"c2", "c3"});
  }
  SECTION("also when it went back to exactly where all was found to stand") {
    CHECK(s.lost().empty());
    put(s.file("STATE.md"), "after c4\n");
    REQUIRE(s.made(s.store.commit_boundary(s.subject("c4"), {"c4", "n1", "", "late"}, true), "c4"));
    REQUIRE(s.git("reset -q --soft HEAD~1").exit_code == 0);
    CHECK(s.lost() == std::vector<std::string>{"c4"});
  }
}

TEST_CASE("case 42 user-git-parallel: a cycle's commit that no branch has any more is told of") {
  cycling_store s;
  for (const auto* id : {"c1", "c2", "c3"})
    s.cycle(id);
  REQUIRE(s.acknowledged.size() == 3);
  SECTION("put back, as an aborted rebase does it") {
    REQUIRE(s.git("reset -q --hard HEAD~4").exit_code == 0);
    CHECK(s.lost() == std::vector<std::string>{"c2", "c3"});
    CHECK(s.lost().empty());
  }
  SECTION("and gone from the repository as well") {
    REQUIRE(s.git("reset -q --hard HEAD~2 && git reflog expire --all --expire=now && git gc -q "
                  "--prune=now")
                .exit_code == 0);
    CHECK(s.lost() == std::vector<std::string>{"c3"});
  }
  SECTION("not when a rebase has made copies, which are watched from now on") {
    REQUIRE(s.git("rebase -q --force-rebase HEAD~4").exit_code == 0);
    CHECK(s.lost().empty());
    REQUIRE(s.git("reset -q --hard HEAD~2").exit_code == 0);
    CHECK(s.lost() == std::vector<std::string>{"c3"});
  }
  SECTION("not when another branch or a tag has it") {
    REQUIRE(s.git("checkout -q -b side HEAD~4").exit_code == 0);
    CHECK(s.lost().empty());
    REQUIRE(s.git("tag kept main && git branch -q -D main").exit_code == 0);
    CHECK(s.lost().empty());
  }
  SECTION("not when a person commits behind it") {
    REQUIRE(s.git("commit -q --allow-empty -m theirs").exit_code == 0);
    CHECK(s.lost().empty());
  }
}

} // namespace boyd::rebase_test
