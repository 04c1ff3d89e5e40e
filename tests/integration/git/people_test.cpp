#include "integration/git/fixture.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <thread>

namespace boyd::people_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::size_t count_with(const std::vector<std::string>& subjects, const std::string& start) {
  return static_cast<std::size_t>(
      std::count_if(subjects.begin(), subjects.end(),
                    [&](const std::string& s) { return s.rfind(start, 0) == 0; }));
}

/// Both of two commits have the same.
const earlier_version as_it_is{"STATE.md",
                               [](const std::string&, const std::string& later) { return later; }};

} // namespace

TEST_CASE("what a person has staged is neither committed nor lost") {
  git_home h;
  put(h.file("ours"), "1\n");
  put(h.file("theirs"), "1\n");
  put(h.file("gone"), "1\n");
  REQUIRE(h.commit_all("base"));
  put(h.file("theirs"), "2\n");
  put(h.file("fresh"), "new\n");
  REQUIRE(h.git("add theirs fresh && git rm -q --cached gone").exit_code == 0);
  put(h.file("ours"), "2\n");
  REQUIRE(h.repo->stage({{"ours", change_kind::modified}}));
  REQUIRE(h.commit({{"ours", change_kind::modified}}, "ours only"));
  CHECK(h.git("show --name-only --format= HEAD").text == "ours\n");
  CHECK(h.git("diff --cached --name-status").text == "A\tfresh\nD\tgone\nM\ttheirs\n");
  CHECK(h.git("status --porcelain").text.find("ours") == std::string::npos);
  CHECK(h.repo->changes().value() ==
        std::vector<path_change>{{"fresh", change_kind::added}, {"theirs", change_kind::modified}});
  h.check_sound();
}

TEST_CASE("case 42 user-git-parallel: commits beside a person's git lose nothing on either side") {
  git_home h;
  constexpr int theirs = 25;
  constexpr int ours = 60;
  put(h.file("start"), "x");
  REQUIRE(h.commit_all("start"));
  const std::string script = R"(
    try() { n=0; until "$@" >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 3000 ] || exit 1; done; }
    export GIT_AUTHOR_NAME=p GIT_AUTHOR_EMAIL=p@p GIT_COMMITTER_NAME=p GIT_COMMITTER_EMAIL=p@p
    for i in $(seq )" + std::to_string(theirs) +
                             R"(); do
      echo $i > person-$i; try git add person-$i; try git commit -m "person $i"
      [ $((i % 8)) -ne 0 ] || git gc -q || exit 2
    done)";
  said person;
  std::thread other([&] { person = shell(h.path, script); });
  std::size_t acknowledged = 0;
  for (int i = 0; i < ours; ++i) {
    put(h.file("STATE.md"), std::to_string(i) + "\n");
    const auto done = h.repo->commit({{"STATE.md", change_kind::modified}},
                                     "ours " + std::to_string(i), at(noon + i));
    INFO((done ? std::string() : to_string(done.error())));
    CHECK(done);
    acknowledged += done ? 1 : 0;
  }
  other.join();
  INFO(person.text);
  CHECK(person.exit_code == 0);
  const auto subjects = h.subjects();
  CHECK(promised(person.exit_code != 0 || count_with(subjects, "person ") == theirs,
                 "a person's commits beside the node's are all there"));
  CHECK(promised(count_with(subjects, "ours ") >= acknowledged,
                 "the node's commits beside a person's are all there"));
  CHECK(count_with(subjects, "ours ") == ours);
  CHECK(h.git("ls-files | wc -l").text == std::to_string(theirs + 2) + "\n");
  h.check_clean();
  h.check_sound();
}

TEST_CASE("a branch that moves under the commit is followed") {
  git_home h;
  constexpr int theirs = 40;
  constexpr int ours = 40;
  put(h.file("start"), "x");
  REQUIRE(h.commit_all("start"));
  // update-ref takes no index lock: only compare-and-swap protects both sides here.
  const std::string script = R"(
    export GIT_AUTHOR_NAME=p GIT_AUTHOR_EMAIL=p@p GIT_COMMITTER_NAME=p GIT_COMMITTER_EMAIL=p@p
    for i in $(seq )" + std::to_string(theirs) +
                             R"(); do n=0; while :; do
        old=$(git rev-parse HEAD)
        new=$(git commit-tree "$old^{tree}" -p $old -m "person $i")
        git update-ref refs/heads/main $new $old 2>/dev/null && break
        n=$((n+1)); [ $n -lt 3000 ] || exit 1
      done; done)";
  said person;
  std::thread other([&] { person = shell(h.path, script); });
  int done = 0;
  int gave_up = 0;
  while (done < ours && gave_up < ours) {
    put(h.file("STATE.md"), std::to_string(done) + "\n");
    const std::string name = "ours " + std::to_string(done);
    const std::vector<path_change> paths{{"STATE.md", change_kind::modified}};
    // Every other time as the later one of two, which go together.
    bool made = false;
    if (done % 2 == 0)
      made = h.repo->commit_two(paths, as_it_is, "before " + name, name, at(noon)).has_value();
    else if (const auto one = h.repo->commit(paths, name, at(noon)))
      made = one->has_value();
    (made ? done : gave_up) += 1;
  }
  other.join();
  CHECK(person.exit_code == 0);
  const auto subjects = h.subjects();
  CHECK(count_with(subjects, "person ") == theirs);
  CHECK(count_with(subjects, "ours ") == ours);
  CHECK(count_with(subjects, "before ours ") == ours / 2);
  for (std::size_t i = 0; i + 1 < subjects.size(); ++i)
    if (subjects[i + 1].starts_with("before "))
      CHECK(subjects[i + 1] == "before " + subjects[i]);
  h.check_clean();
  h.check_sound();
}

TEST_CASE("commits go to what HEAD points at") {
  git_home h;
  put(h.file("a"), "1\n");
  const auto base = h.commit_all("base");
  put(h.file("a"), "2\n");
  SECTION("another branch") {
    REQUIRE(h.git("checkout -q -b side").exit_code == 0);
    const auto made = h.commit_all("there");
    CHECK(h.git("rev-parse side").text == *made + "\n");
    CHECK(h.git("rev-parse main").text == *base + "\n");
  }
  SECTION("a new branch without commits") {
    REQUIRE(h.git("checkout -q --orphan fresh").exit_code == 0);
    const auto made = h.commit_all("there");
    CHECK(h.git("rev-parse fresh").text == *made + "\n");
    CHECK(h.git("rev-list --count fresh").text == "1\n");
  }
  SECTION("detached") {
    REQUIRE(h.git("checkout -q --detach").exit_code == 0);
    const auto made = h.commit_all("there");
    CHECK(h.git("rev-parse HEAD").text == *made + "\n");
    CHECK(h.git("rev-parse main").text == *base + "\n");
  }
  h.check_clean();
  h.check_sound();
}

TEST_CASE("in the middle of a merge nothing is touched") {
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("base"));
  REQUIRE(h.git("checkout -q -b side").exit_code == 0);
  put(h.file("a"), "side\n");
  REQUIRE(h.commit_all("side"));
  REQUIRE(h.git("checkout -q main").exit_code == 0);
  put(h.file("a"), "main\n");
  const auto main = h.commit_all("main");
  REQUIRE(h.git("merge side").exit_code != 0);
  const std::string before = h.git("ls-files -s").text;
  const auto changes = h.repo->changes();
  REQUIRE(changes);
  CHECK(h.repo->commit({{"a", change_kind::modified}}, "x", at(noon)).error().code ==
        errc::conflict);
  CHECK(h.repo->stage({{"a", change_kind::modified}}).error().code == errc::conflict);
  CHECK(h.git("ls-files -s").text == before);
  REQUIRE(h.git("merge --abort").exit_code == 0);
  CHECK(h.repo->head().value() == main);
  put(h.file("a"), "after\n");
  CHECK(h.commit_all("after"));
}

TEST_CASE("a reflog that a crash has torn is never read as a commit that does not exist") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  for (const char* name : {".git/logs/HEAD", ".git/logs/refs/heads/main"}) {
    const auto whole = get(h.file(name));
    put(h.file(name), whole + whole.substr(0, 60));
  }
  put(h.file("a"), "2");
  REQUIRE(h.commit_all("two"));
  h.check_sound();
  CHECK(h.git("log -1 -g --format=%gs").text == "commit: two\n");
}

TEST_CASE("a person's commits are seen at once by an opening that is a moment old") {
  git_home h;
  put(h.file("a"), "1");
  REQUIRE(h.commit_all("one"));
  for (int i = 0; i < 3; ++i) {
    put(h.file("b"), std::to_string(i));
    REQUIRE(h.git("add b && git -c user.name=p -c user.email=p@p commit -q -m theirs").exit_code ==
            0);
    CHECK(h.repo->changes().value().empty());
    CHECK(h.repo->head().value() == h.git("rev-parse HEAD").text.substr(0, 40));
    REQUIRE(h.git("gc -q --prune=now && git pack-refs --all").exit_code == 0);
    put(h.file("a"), "mine " + std::to_string(i));
    REQUIRE(h.commit_all("ours"));
  }
  CHECK(h.subjects().size() == 7);
  h.check_clean();
  h.check_sound();
}

} // namespace boyd::people_test
