#include "integration/git/fixture.hpp"

#include <algorithm>
#include <malloc.h>

namespace boyd::lost_test {

using namespace boyd;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string all_remarks(git_home& h) {
  std::string text;
  if (!h.repo->changes())
    return "no changes";
  for (const auto& r : h.repo->remarks())
    text += r + "\n";
  return text;
}

std::string why(const result<std::unique_ptr<repository>>& opened) {
  return opened ? std::string() : to_string(opened.error());
}

void three_commits(git_home& h) {
  for (const char* name : {"one", "two", "three"}) {
    put(h.file("a"), name);
    REQUIRE(h.commit_all(name));
  }
}

std::string tip(const git_home& h) {
  auto text = h.git("rev-parse HEAD").text;
  text.pop_back();
  return text;
}

void run(const git_home& h, const std::string& script) {
  const auto done = shell(h.path, script);
  INFO(script + "\n" + done.text);
  REQUIRE(done.exit_code == 0);
}

} // namespace

TEST_CASE("case A7: a branch that is lost is told with its newest commit, and nothing is begun") {
  const std::string loss =
      GENERATE(as<std::string>{}, "rm .git/refs/heads/main", "rm .git/packed-refs",
               ": > .git/packed-refs", "rm .git/packed-refs .git/logs/refs/heads/main",
               "rm -r .git/packed-refs .git/logs", "rm -r .git/refs/heads .git/logs",
               "git update-ref -d refs/heads/main", "git branch keep && rm .git/refs/heads/main",
               "echo 'ref: refs/heads/mian' > .git/HEAD && rm -r .git/logs",
               "rm -r .git/refs/heads/main .git/logs && git repack -q -a -d 2>/dev/null; true");
  const bool open_already = GENERATE(true, false);
  INFO(loss);
  git_home h;
  three_commits(h);
  const auto newest = tip(h);
  if (loss.find("packed-refs") != std::string::npos)
    run(h,
        "git -c safe.directory='*' pack-refs --all && git -c safe.directory='*' repack -q -a -d");
  if (!open_already)
    h.repo.reset();
  run(h, loss);
  put(h.file("a"), "four");
  if (open_already) {
    const auto head = h.repo->head();
    REQUIRE_FALSE(head);
    CHECK_THAT(to_string(head.error()), Contains("is missing") && Contains(newest));
    CHECK_FALSE(h.repo->changes());
    CHECK_FALSE(h.repo->commit({{"a", change_kind::modified}}, "four", at(noon)));
    h.repo.reset();
  }
  for (const auto& opened : {h.provider->open(h.path, h.who), h.provider->init(h.path, h.who)})
    CHECK_THAT(why(opened), Contains("is missing") && Contains("update-ref") && Contains(newest) &&
                                Contains("boyd init"));
  // The command that was told brings it back.
  const auto told = why(h.provider->open(h.path, h.who));
  const auto from = told.find("git -C ");
  REQUIRE(from != std::string::npos);
  run(h, told.substr(from, told.find(';', from) - from));
  auto again = h.provider->open(h.path, h.who);
  INFO(why(again));
  REQUIRE(again);
  h.repo = std::move(*again);
  REQUIRE(h.commit_all("four"));
  CHECK(h.subjects() == std::vector<std::string>{"four", "three", "two", "one"});
  h.check_sound();
}

TEST_CASE("case A7: a branch that never had a commit is no loss") {
  git_home h;
  SECTION("new") {}
  SECTION("with staged files") {
    put(h.file("b"), "1");
    REQUIRE(h.repo->stage({{"b", change_kind::added}}));
  }
  SECTION("with objects of a first commit that was never finished") {
    put(h.file("b"), "1");
    run(h, "git -c safe.directory='*' add b && t=$(git -c safe.directory='*' write-tree) && "
           "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
           "GIT_COMMITTER_EMAIL=a@b && c=$(git -c safe.directory='*' commit-tree $t -m x) && "
           "git -c safe.directory='*' commit-tree $t -p $c -m y");
  }
  CHECK(h.repo->head().value() == std::nullopt);
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  CHECK(h.subjects() == std::vector<std::string>{"one"});
  h.check_sound();
}

TEST_CASE("case A7: a first commit whose branch a crash kept from being made is kept") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  const auto first = tip(h);
  // As between libgit2's line in the reflog and the branch's own file.
  run(h, "rm .git/refs/heads/main");
  auto again = h.provider->open(h.path, h.who);
  INFO(why(again));
  REQUIRE(again);
  CHECK((*again)->head().value() == first);
  CHECK(tip(h) == first);
}

TEST_CASE("case A7: oddities of HEAD and of branches are told") {
  git_home h;
  three_commits(h);
  CHECK(all_remarks(h).empty());
  SECTION("detached") {
    REQUIRE(h.git("checkout -q --detach").exit_code == 0);
    CHECK_THAT(all_remarks(h), Contains(R"(".git/HEAD" is detached)") && Contains("git switch -c"));
    REQUIRE(h.git("checkout -q main").exit_code == 0);
    CHECK(all_remarks(h).empty());
  }
  SECTION("a new branch of a person's") {
    REQUIRE(h.git("checkout -q --orphan fresh").exit_code == 0);
    CHECK_THAT(all_remarks(h), Contains("fresh") && Contains("has no commit"));
  }
  SECTION("another branch is gone with packed-refs") {
    REQUIRE(h.git("branch side").exit_code == 0);
    REQUIRE(h.git("pack-refs --all").exit_code == 0);
    put(h.file("a"), "four");
    REQUIRE(h.commit_all("four"));
    run(h, "rm .git/packed-refs");
    CHECK_THAT(all_remarks(h),
               Contains(R"(refs/heads/side" is missing)") && Contains("git update-ref"));
  }
  SECTION("packed-refs is damaged while the branch is not") {
    run(h, "printf 'xxxx refs/heads/side\\n' > .git/packed-refs");
    CHECK_THAT(all_remarks(h), Contains(R"(".git/packed-refs" is damaged)"));
  }
  SECTION("the index is damaged") {
    put(h.file(".git/index"), "DIRCnonsense");
    CHECK_THAT(all_remarks(h), Contains(R"(".git/index" cannot be read)"));
  }
}

TEST_CASE("case A7: a damaged HEAD is named") {
  const std::string harm =
      GENERATE(as<std::string>{}, "rm .git/HEAD", ": > .git/HEAD", "echo nonsense > .git/HEAD",
               "head -c 21 /dev/zero > .git/HEAD");
  INFO(harm);
  git_home h;
  three_commits(h);
  run(h, harm);
  CHECK_THAT(why(h.provider->open(h.path, h.who)),
             Contains("HEAD") && (Contains("damaged") || Contains("missing")) &&
                 Contains("refs/heads/main"));
  run(h, "echo 'ref: refs/heads/main' > .git/HEAD");
  CHECK(h.provider->open(h.path, h.who));
}

TEST_CASE("case A7: extensions that change nothing for Boyd are read") {
  const std::string extension =
      GENERATE(as<std::string>{}, "worktreeConfig", "preciousObjects", "noop", "relativeWorktrees");
  git_home h;
  three_commits(h);
  h.repo.reset();
  run(h, "git -c safe.directory='*' config core.repositoryFormatVersion 1 && "
         "git -c safe.directory='*' config extensions." +
             extension + " true");
  if (extension == "worktreeConfig")
    run(h, "git -c safe.directory='*' config --worktree core.abbrev 12");
  for (const bool made : {false, true}) {
    auto again = made ? h.provider->init(h.path, h.who) : h.provider->open(h.path, h.who);
    INFO(extension + ": " + why(again));
    REQUIRE(again);
    h.repo = std::move(*again);
    put(h.file("a"), made ? "4" : "5");
    REQUIRE(h.commit_all("more"));
  }
}

TEST_CASE("case A7: work in a repository with extensions costs no memory by and by") {
  git_home h;
  three_commits(h);
  h.repo.reset();
  run(h, "git -c safe.directory='*' config core.repositoryFormatVersion 1");
  h.repo = std::move(*h.provider->open(h.path, h.who));
  REQUIRE(h.repo->history("", 1));
  const auto before = ::mallinfo2().uordblks; // none under a sanitizer
  for (int i = 0; i < 200; ++i)
    REQUIRE(h.repo->history("", 1));
  CHECK(::mallinfo2().uordblks < before + (1U << 20));
  // Another configuration is read.
  run(h, "git -c safe.directory='*' config extensions.compactMagic true");
  const auto refused = h.repo->history("", 1);
  REQUIRE_FALSE(refused);
  CHECK_THAT(to_string(refused.error()), Contains("compactmagic"));
}

TEST_CASE("case A7: a repository of another kind is called what it is") {
  const temp_dir root;
  const auto path = root.file("home");
  std::filesystem::create_directories(path);
  std::string kind;
  SECTION("sha256") {
    const auto made = shell(path, "git init -q --object-format=sha256 .");
    INFO(made.text);
    REQUIRE(made.exit_code == 0);
    kind = "sha256";
  }
  SECTION("reftable") {
    REQUIRE(shell(path, "git init -q . && git config core.repositoryformatversion 1 && "
                        "git config extensions.refStorage reftable && mkdir .git/reftable && "
                        "echo 'ref: refs/heads/.invalid' > .git/HEAD")
                .exit_code == 0);
    kind = "reftable";
  }
  SECTION("unknown") {
    REQUIRE(shell(path, "git init -q . && git config core.repositoryformatversion 1 && "
                        "git config extensions.compactMagic true")
                .exit_code == 0);
    kind = "compactmagic";
  }
  SECTION("a newer format") {
    REQUIRE(shell(path, "git init -q . && git config core.repositoryformatversion 7").exit_code ==
            0);
    kind = "format version 7";
  }
  const auto provider = adapters::make_git_repositories();
  CHECK_THAT(why(provider->open(path, git_identity{})), Contains(kind) && Contains("config"));
  CHECK_THAT(why(provider->init(path, git_identity{})), Contains(kind) && Contains("config"));
}

} // namespace boyd::lost_test
