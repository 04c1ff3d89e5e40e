#include "integration/git/fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace boyd::repository_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("init makes a repository that git accepts, twice the same") {
  git_home h;
  put(h.file("STATE.md"), "one\n");
  const auto first = h.commit_all("first\n\nBoyd-Cycle: c1\nBoyd-Node: n1\n");
  REQUIRE(first);
  const std::string config = get(h.file(".git/config"));
  auto again = h.provider->init(h.path, h.who);
  REQUIRE(again);
  CHECK(get(h.file(".git/config")) == config);
  CHECK((*again)->head().value() == first);
  CHECK(h.git("symbolic-ref HEAD").text == "refs/heads/main\n");
  CHECK(h.git("log --format='%an <%ae> %cn <%ce> %at %s %(trailers:key=Boyd-Cycle,valueonly)'")
            .text.rfind("boyd <kernel@boyd.local> boyd <kernel@boyd.local> 1770984000 first c1",
                        0) == 0);
  CHECK(h.git("config --local commit.gpgsign").text == "false\n");
  CHECK(h.git("config --local gc.auto").text == "0\n");
  struct stat info {};
  REQUIRE(::stat(h.file(".git").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777u) == 0700u);
  h.check_sound();
  h.check_clean();
}

TEST_CASE("an initialisation that was cut short is completed") {
  git_home h;
  h.repo.reset();
  const char* victim = GENERATE("HEAD", "config", "refs", "objects", "info");
  std::filesystem::remove_all(h.file(std::string(".git/") + victim));
  auto again = h.provider->init(h.path, h.who);
  INFO((again ? std::string() : to_string(again.error())));
  REQUIRE(again);
  h.repo = std::move(*again);
  put(h.file("a"), "a\n");
  REQUIRE(h.commit_all("a"));
  CHECK(h.git("config --local gc.auto").text == "0\n");
  h.check_sound();
  h.check_clean();
}

TEST_CASE("changes and commits follow the work tree, modes, links and directories") {
  git_home h;
  put(h.file("plain"), "1\n");
  put(h.file("deep/er/file"), "2\n");
  put(h.file("run.sh"), "#!/bin/sh\n");
  ::chmod(h.file("run.sh").c_str(), 0755);
  std::filesystem::create_symlink("plain", h.file("link"));
  REQUIRE(h.repo->changes().value() ==
          std::vector<path_change>{{"deep/er/file", change_kind::added},
                                   {"link", change_kind::added},
                                   {"plain", change_kind::added},
                                   {"run.sh", change_kind::added}});
  REQUIRE(h.commit_all("all"));
  h.check_clean();
  CHECK(h.repo->changes().value().empty());
  CHECK(h.repo->tracked_files().value() == 4);
  CHECK(h.git("ls-tree -r HEAD --format='%(objectmode) %(path)'").text ==
        "100644 deep/er/file\n120000 link\n100644 plain\n100755 run.sh\n");
  std::filesystem::remove_all(h.file("deep"));
  put(h.file("deep"), "now a file\n");
  put(h.file("plain"), "3\n");
  ::chmod(h.file("run.sh").c_str(), 0644);
  std::filesystem::remove(h.file("link"));
  REQUIRE(h.repo->changes().value() ==
          std::vector<path_change>{{"deep", change_kind::added},
                                   {"deep/er/file", change_kind::deleted},
                                   {"link", change_kind::deleted},
                                   {"plain", change_kind::modified},
                                   {"run.sh", change_kind::modified}});
  REQUIRE(h.commit_all("changed"));
  CHECK_FALSE(h.commit_all("nothing"));
  h.check_clean();
  h.check_sound();
}

TEST_CASE("same size, same moment: a change is seen") {
  git_home h;
  for (int i = 0; i < 15; ++i) {
    put(h.file("STATE.md"), std::string("version ") + static_cast<char>('A' + i % 26) + "\n");
    REQUIRE(h.repo->stage({{"STATE.md", change_kind::modified}}));
    put(h.file("STATE.md"), std::string("version ") + static_cast<char>('a' + i % 26) + "\n");
    put(h.file("other"), std::to_string(i));
    REQUIRE(h.repo->stage({{"other", change_kind::modified}}));
    REQUIRE(h.commit_all("v" + std::to_string(i)));
    REQUIRE(h.git("diff HEAD --stat").text.empty());
    REQUIRE(h.repo->read_at("HEAD", "STATE.md").value() == get(h.file("STATE.md")));
  }
}

TEST_CASE("what is ignored, temporary, special or a nested repository is not versioned") {
  git_home h;
  put(h.file(".gitignore"), "secret\n");
  put(h.file("secret"), "x");
  put(h.file(".STATE.md.boyd-tmp-0"), "half");
  put(h.file("STATE.md.bak"), "copy");
  put(h.file("nested/file"), "x");
  REQUIRE(shell(h.file("nested"), "git init -q . && git -c user.name=p -c user.email=p@p "
                                  "commit -q --allow-empty -m x")
              .exit_code == 0);
  ::mkfifo(h.file("fifo").c_str(), 0600);
  CHECK(h.repo->changes().value() == std::vector<path_change>{{".gitignore", change_kind::added}});
  CHECK(h.repo->left_out() == std::vector<std::string>{"nested/"});
  REQUIRE(h.commit({{".gitignore", change_kind::added},
                    {"secret", change_kind::added},
                    {"fifo", change_kind::added}},
                   "x"));
  CHECK(h.git("ls-files").text == ".gitignore\n");
}

TEST_CASE("a nested repository is named until it is ignored or gone") {
  git_home h;
  put(h.file("work/tool/file"), "x");
  REQUIRE(shell(h.file("work/tool"), "git init -q .").exit_code == 0);
  REQUIRE(h.repo->changes());
  CHECK(h.repo->left_out() == std::vector<std::string>{"work/tool/"});
  put(h.file(".gitignore"), "work/\n");
  REQUIRE(h.repo->changes());
  CHECK(h.repo->left_out().empty());
  put(h.file(".gitignore"), "");
  std::filesystem::remove_all(h.file("work/tool/.git"));
  REQUIRE(h.repo->changes());
  CHECK(h.repo->left_out().empty());
}

TEST_CASE("a nested repository without a file of its own is named, an empty directory is not") {
  git_home h;
  put(h.file("STATE.md"), "x");
  std::filesystem::create_directories(h.file("empty/deep"));
  std::filesystem::create_directories(h.file("sub"));
  std::filesystem::create_directories(h.file("quiet"));
  REQUIRE(shell(h.file("sub"), "git init -q .").exit_code == 0);
  REQUIRE(shell(h.file("quiet"), "git init -q . && echo '*' > .gitignore").exit_code == 0);
  CHECK(h.repo->changes().value() == std::vector<path_change>{{"STATE.md", change_kind::added}});
  CHECK(h.repo->left_out() == std::vector<std::string>{"quiet/", "sub/"});
  h.commit_all("one");
  put(h.file(".gitignore"), "sub/\nquiet/\n");
  REQUIRE(h.repo->changes());
  CHECK(h.repo->left_out().empty());
}

TEST_CASE("whether a repository may stand somewhere is known before anything is made") {
  const temp_dir root;
  REQUIRE(shell(root.path(), "git init -q outer && echo kernel > outer/.gitignore").exit_code == 0);
  const auto refused = adapters::check_place_of_repository(root.file("outer/a/b/c"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK_FALSE(refused.error().next.empty());
  CHECK(adapters::check_place_of_repository(root.file("outer/kernel/c")));
  CHECK(adapters::check_place_of_repository(root.file("elsewhere/c")));
  CHECK_FALSE(std::filesystem::exists(root.file("outer/a")));
  CHECK_FALSE(std::filesystem::exists(root.file("elsewhere")));
}

TEST_CASE("only the paths that are named are committed, and only inside paths") {
  git_home h;
  put(h.file("a"), "a");
  put(h.file("b"), "b");
  REQUIRE(h.commit({{"a", change_kind::added}}, "a"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "a\n");
  CHECK(h.git("status --porcelain").text == "?? b\n");
  CHECK_FALSE(h.commit({{"vanished", change_kind::modified}}, "x"));
  put(h.root.file("outside"), "x");
  std::filesystem::create_directory_symlink(h.root.path(), h.file("dir"));
  for (const char* path :
       {"../outside", "/etc/passwd", ".git/config", "x/../../outside", "", "a/", "./a"}) {
    INFO(path);
    const auto done = h.repo->commit({{path, change_kind::added}}, "x", at(noon));
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::invalid_argument);
  }
  CHECK_FALSE(h.commit({{"dir/outside", change_kind::added}}, "x"));
}

TEST_CASE("variables, global configuration and hooks have no say") {
  git_home h;
  git_home other;
  put(other.file("o"), "o");
  REQUIRE(other.commit_all("o"));
  put(h.root.file("person/.gitconfig"),
      "[user]\nname = thief\n[core]\nautocrlf = true\nexcludesFile = /dev/stdin\n");
  for (const char* hook : {"pre-commit", "post-commit", "reference-transaction", "commit-msg"}) {
    put(h.file(std::string(".git/hooks/") + hook),
        "#!/bin/sh\ntouch '" + h.root.path() + "/ran'\n");
    ::chmod(h.file(std::string(".git/hooks/") + hook).c_str(), 0755);
  }
  ::setenv("GIT_DIR", other.file(".git").c_str(), 1);
  ::setenv("GIT_WORK_TREE", other.path.c_str(), 1);
  ::setenv("GIT_INDEX_FILE", other.file(".git/index").c_str(), 1);
  ::setenv("GIT_OBJECT_DIRECTORY", other.file(".git/objects").c_str(), 1);
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("HOME", h.root.file("person").c_str(), 1);
  put(h.file("a"), "a\r\n");
  auto opened = h.provider->open(h.path, h.who);
  REQUIRE(opened);
  h.repo = std::move(*opened);
  const auto made = h.commit_all("mine");
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"})
    ::unsetenv(name);
  ::setenv("HOME", home.c_str(), 1);
  REQUIRE(made);
  CHECK(h.subjects() == std::vector<std::string>{"mine"});
  CHECK(other.subjects() == std::vector<std::string>{"o"});
  CHECK(h.git("log --format=%an").text == "boyd\n");
  CHECK(h.git("cat-file -p HEAD:a").text == "a\r\n");
  CHECK_FALSE(std::filesystem::exists(h.root.file("ran")));
  h.check_sound();
}

TEST_CASE("a directory inside another work tree is refused unless ignored there") {
  git_home outer;
  auto refused = outer.provider->init(outer.file("inner"), outer.who);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK_FALSE(std::filesystem::exists(outer.file("inner")));
  put(outer.file(".gitignore"), "inner/\n");
  REQUIRE(outer.provider->init(outer.file("inner"), outer.who));
  REQUIRE(outer.provider->open(outer.file("inner"), outer.who));
  put(outer.file(".gitignore"), "\n");
  auto closed = outer.provider->open(outer.file("inner"), outer.who);
  REQUIRE_FALSE(closed);
  CHECK(closed.error().code == errc::refused);
}

TEST_CASE("it is never searched upwards, nor followed elsewhere") {
  git_home h;
  temp_dir empty;
  auto none = h.provider->open(empty.path(), h.who);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::repository_unavailable);
  CHECK(h.provider->open(empty.file("missing"), h.who).error().code ==
        errc::repository_unavailable);
  SECTION("a gitlink file") {
    put(empty.file(".git"), "gitdir: " + h.file(".git") + "\n");
  }
  SECTION("a link") {
    std::filesystem::create_symlink(h.file(".git"), empty.file(".git"));
  }
  SECTION("a shared common directory") {
    std::filesystem::copy(h.file(".git"), empty.file(".git"),
                          std::filesystem::copy_options::recursive);
    put(empty.file(".git/commondir"), h.file(".git") + "\n");
  }
  CHECK(h.provider->open(empty.path(), h.who).error().code == errc::refused);
  CHECK(h.provider->init(empty.path(), h.who).error().code == errc::refused);
}

TEST_CASE("a work tree configured elsewhere is not used") {
  git_home h;
  temp_dir elsewhere;
  put(elsewhere.file("theirs"), "x");
  REQUIRE(h.git("config core.worktree '" + elsewhere.path() + "'").exit_code == 0);
  put(h.file("ours"), "x");
  CHECK(h.repo->changes().value() == std::vector<path_change>{{"ours", change_kind::added}});
}

TEST_CASE("history, points in time, versions and differences") {
  git_home h;
  CHECK_FALSE(h.repo->head().value());
  CHECK(h.repo->history("", 5).value().empty());
  CHECK(h.repo->commit_at(at(noon)).error().code == errc::not_found);
  CHECK(h.repo->diff("HEAD", "").error().code == errc::not_found);
  put(h.file("a"), "1\n");
  const auto c1 = h.commit_all("one\n\nBoyd-Cycle: x\nBoyd-Graph-Head: y\n", noon);
  put(h.file("b"), "1\n");
  const auto c2 = h.commit_all("two", noon + 60);
  put(h.file("a"), "2\n");
  const auto c3 = h.commit_all("three", noon + 120);
  REQUIRE(c3);
  const auto all = h.repo->history("", 10).value();
  REQUIRE(all.size() == 3);
  CHECK(all[0].hash == *c3);
  CHECK(all[2].subject == "one");
  CHECK(all[2].time == at(noon));
  CHECK(all[2].trailers == std::vector<std::pair<std::string, std::string>>{
                               {"Boyd-Cycle", "x"}, {"Boyd-Graph-Head", "y"}});
  const auto of_a = h.repo->history("a", 10).value();
  REQUIRE(of_a.size() == 2);
  CHECK(of_a[1].hash == *c1);
  CHECK(h.repo->history("", 1).value().size() == 1);
  CHECK(h.repo->commit_at(at(noon + 119)).value() == *c2);
  CHECK(h.repo->commit_at(at(noon - 1)).error().code == errc::not_found);
  CHECK(h.repo->read_at(*c1, "a").value() == "1\n");
  CHECK(h.repo->read_at("HEAD~2", "a").value() == "1\n");
  CHECK(h.repo->read_at(*c1, "b").error().code == errc::not_found);
  CHECK(h.repo->read_at("nonsense", "b").error().code == errc::not_found);
  CHECK(h.repo->diff(*c1, *c3).value() == h.git("diff " + *c1 + " " + *c3).text);
  CHECK(h.repo->diff(*c3, "").value().empty());
  put(h.file("new"), "n\n");
  CHECK(h.repo->diff(*c3, "").value().find("+n\n") != std::string::npos);
}

TEST_CASE("what git knows and what it ignores are two things") {
  git_home h;
  put(h.file("kept/a.log"), "1\n");
  put(h.file("b.txt"), "2\n");
  REQUIRE(h.commit_all("first"));
  put(h.file(".gitignore"), "*.log\nbuild/\n");
  put(h.file("new.txt"), "3\n");
  const auto tracked = h.repo->tracked_paths();
  REQUIRE(tracked);
  CHECK((*tracked == std::vector<std::string>{"b.txt", "kept/a.log"}));
  for (const auto* path : {"x.log", "build/deep/er.txt", "kept/new.log"})
    CHECK(h.repo->ignores(path).value());
  for (const auto* path : {"new.txt", "not/there.txt"})
    CHECK_FALSE(h.repo->ignores(path).value());
}

} // namespace boyd::repository_test
