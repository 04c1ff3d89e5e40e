#include "integration/git/fixture.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::refused_files_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::string all_remarks(const repository& repo) {
  std::string text;
  for (const auto& r : repo.remarks())
    text += r + "\n";
  return text;
}

bool in_head(const git_home& h, const std::string& name) {
  return h.git("cat-file -e 'HEAD:" + name + "'").exit_code == 0;
}

/// The test as an ordinary user, whom modes stop.
class as_nobody {
 public:
  explicit as_nobody(const temp_dir& root) {
    if (::geteuid() != 0)
      return;
    REQUIRE(shell(root.path(), "chown -R 65534:65534 .").exit_code == 0);
    REQUIRE(::seteuid(65534) == 0);
    changed_ = true;
  }
  as_nobody(const as_nobody&) = delete;
  as_nobody& operator=(const as_nobody&) = delete;
  ~as_nobody() {
    if (changed_)
      CHECK(::seteuid(0) == 0);
  }

 private:
  bool changed_ = false;
};

} // namespace

TEST_CASE("field case 36: a name that git refuses is left out and named, the rest is committed") {
  const std::string name = GENERATE(
      as<std::string>{}, ".git.", ".GIT", "git~1", "GIT~1", ".git ", ".git . .", ".git::$INDEX",
      ".git\\x", "a\\.git", ".g\xe2\x80\x8cit", "\xef\xbb\xbf.git", "deep/below/.Git/x", ".git./x");
  git_home h;
  put(h.file("kept"), "1\n");
  REQUIRE(h.commit_all("base"));
  put(h.file(name), "refused\n");
  put(h.file("good"), "2\n");
  INFO(name);
  REQUIRE(h.commit_all("with it"));
  CHECK(in_head(h, "good"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "good\nkept\n");
  CHECK(h.repo->remarks().size() == 1);
  CHECK(all_remarks(*h.repo).find("a name that git does not accept") != std::string::npos);
  // It is no change for ever, and a call that names it does not fail the others.
  CHECK(h.repo->changes().value().empty());
  put(h.file("good"), "3\n");
  CHECK(h.commit({{name, change_kind::added}, {"good", change_kind::modified}}, "named"));
  CHECK(h.repo->stage({{name, change_kind::added}}));
  std::filesystem::remove_all(h.file(name.substr(0, name.find('/'))));
  CHECK(h.repo->changes());
  CHECK(h.repo->remarks().empty());
  h.check_sound();
}

TEST_CASE("field case 36: odd names that git takes are committed") {
  const std::string name = GENERATE(as<std::string>{}, "a\\b", "\xff\xfe name", "line\nbreak",
                                    std::string(255, 'n'), ".gitx", "git~2", ".github/x");
  git_home h;
  put(h.file(name), "1\n");
  REQUIRE(h.commit_all("with it"));
  CHECK(h.repo->remarks().empty());
  CHECK(h.repo->changes().value().empty());
  h.check_clean();
  h.check_sound();
}

TEST_CASE("field case 36: a link that git refuses is left out") {
  const std::string name = GENERATE(as<std::string>{}, ".gitmodules", ".GITMODULES", "gitmod~1");
  git_home h;
  put(h.file("good"), "1\n");
  std::filesystem::create_symlink("good", h.file(name));
  REQUIRE(h.commit_all("with it"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "good\n");
  CHECK(h.repo->remarks().size() == 1);
  h.check_sound();
}

TEST_CASE("field case 36: a path that is too long for git is left out, the rest is committed") {
  git_home h;
  put(h.file("good"), "1\n");
  // Deeper than a path can say; made from inside.
  const auto made =
      shell(h.path, "n=$(printf 'd%.0s' $(seq 200)); p=$n; for i in $(seq 11); do p=$p/$n; done; "
                    "mkdir -p a/$p b/$p && echo x > b/$p/deep && mv b a/$p");
  INFO(made.text);
  REQUIRE(made.exit_code == 0);
  REQUIRE(h.commit_all("with it"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "good\n");
  CHECK(h.repo->remarks().size() == 1);
  REQUIRE(shell(h.path, "rm -rf a").exit_code == 0);
  h.check_sound();
}

TEST_CASE("field case 36: files that cannot be read stay as they are in the history") {
  git_home h;
  put(h.file("secret"), "1\n");
  put(h.file("closed/a"), "1\n");
  put(h.file("closed/b"), "1\n");
  put(h.file("good"), "1\n");
  REQUIRE(h.commit_all("base"));
  const as_nobody user(h.root);
  put(h.file("secret"), "2\n");
  put(h.file("fresh"), "1\n");
  put(h.file("shut/x"), "1\n");
  put(h.file("good"), "2\n");
  for (const char* closed : {"secret", "closed", "fresh", "shut"})
    REQUIRE(::chmod(h.file(closed).c_str(), 0) == 0);
  REQUIRE(h.commit_all("some"));
  CHECK(h.git("show HEAD:good").text == "2\n");
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "closed/a\nclosed/b\ngood\nsecret\n");
  CHECK(h.git("show HEAD:secret").text == "1\n");
  INFO(all_remarks(*h.repo));
  for (const char* closed : {"secret", "closed", "fresh", "shut"})
    CHECK(all_remarks(*h.repo).find("\"" + std::string(closed) + "\"") != std::string::npos);
  CHECK(h.repo->changes().value().empty());
  CHECK(h.repo->diff("HEAD", ""));
  for (const char* closed : {"secret", "closed", "fresh", "shut"})
    REQUIRE(::chmod(h.file(closed).c_str(), 0700) == 0);
  CHECK(h.repo->changes().value().size() >= 3);
  REQUIRE(h.commit_all("all"));
  CHECK(h.repo->remarks().empty());
  h.check_sound();
}

TEST_CASE("field case 36: a pipe in the place of a file stops no commit and deletes nothing") {
  git_home h;
  put(h.file("was"), "1\n");
  put(h.file("good"), "1\n");
  REQUIRE(h.commit_all("base"));
  std::filesystem::remove(h.file("was"));
  REQUIRE(::mkfifo(h.file("was").c_str(), 0600) == 0);
  REQUIRE(::mkfifo(h.file("new").c_str(), 0600) == 0);
  put(h.file("good"), "2\n");
  REQUIRE(h.commit_all("with it"));
  CHECK(h.git("show HEAD:was").text == "1\n");
  CHECK(h.git("show HEAD:good").text == "2\n");
  CHECK(all_remarks(*h.repo).find("\"was\" is a pipe") != std::string::npos);
  CHECK(h.repo->changes().value().empty());
  h.check_sound();
}

} // namespace boyd::refused_files_test
