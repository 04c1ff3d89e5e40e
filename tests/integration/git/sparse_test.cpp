#include "boyd/state/versioned_store.hpp"
#include "integration/git/fixture.hpp"

namespace boyd::sparse_test {

using namespace boyd;
using namespace boyd::test;

namespace {

void thirty_directories(const git_home& h) {
  for (int i = 10; i < 40; ++i)
    put(h.file("d" + std::to_string(i) + "/f"), std::to_string(i) + "\n");
}

std::string files_of_head(const git_home& h) {
  return h.git("ls-tree -r --name-only HEAD | wc -l").text;
}

} // namespace

TEST_CASE("field case 13: entries that a person keeps out of the work tree stay as they are") {
  const std::string flag = GENERATE(as<std::string>{}, "skip-worktree", "assume-unchanged");
  const bool remove = GENERATE(true, false);
  git_home h;
  put(h.file("F"), "1\n");
  put(h.file("good"), "1\n");
  REQUIRE(h.commit_all("base"));
  REQUIRE(h.git("update-index --" + flag + " F").exit_code == 0);
  if (remove)
    std::filesystem::remove(h.file("F"));
  else
    put(h.file("F"), "2, mine\n");
  CHECK(h.repo->changes().value().empty());
  CHECK(h.repo->diff("HEAD", "").value().empty());
  CHECK(state::check_deletions(*h.repo, h.repo->changes().value(), h.path));
  put(h.file("good"), "2\n");
  REQUIRE(h.commit_all("next"));
  CHECK(h.git("show HEAD:F").text == "1\n");
  REQUIRE(h.repo->stage({{"F", change_kind::modified}}));
  CHECK_FALSE(h.commit({{"F", change_kind::deleted}}, "by name"));
  const std::string shown = flag == "skip-worktree" ? "S F\n" : "h F\n";
  CHECK(h.git("ls-files -t -v F").text == shown);
  h.check_clean();
  h.check_sound();
}

TEST_CASE("field case 13: a sparse checkout loses nothing") {
  const std::string how = GENERATE(
      as<std::string>{}, "sparse-checkout set --cone $(printf 'd%s ' $(seq 10 29))",
      "sparse-checkout set --no-cone '/d1*/'", "sparse-checkout set --cone --sparse-index d10 d11");
  git_home h;
  thirty_directories(h);
  REQUIRE(h.commit_all("base"));
  INFO(how);
  REQUIRE(h.git("status").exit_code == 0); // git trusts no index of this very moment
  const auto set = h.git(how);
  INFO(set.text);
  REQUIRE(set.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(h.file("d39/f")));
  CHECK(h.repo->changes().value().empty());
  put(h.file("d10/f"), "changed\n");
  put(h.file("new"), "1\n");
  REQUIRE(h.commit_all("next"));
  CHECK(files_of_head(h) == "31\n");
  CHECK(h.git("show HEAD:d10/f").text == "changed\n");
  h.check_clean();
  // With the index gone nothing tells of the skipped files but the checkout's being sparse.
  std::filesystem::remove(h.file(".git/index"));
  put(h.file("d10/f"), "again\n");
  REQUIRE(h.commit_all("without an index"));
  CHECK(files_of_head(h) == "31\n");
  h.check_clean();
  REQUIRE(h.git("sparse-checkout disable").exit_code == 0);
  CHECK(std::filesystem::exists(h.file("d39/f")));
  h.check_clean();
  h.check_sound();
}

TEST_CASE("field case 13: the rule of half of the files counts those of the work tree") {
  git_home h;
  thirty_directories(h);
  REQUIRE(h.commit_all("base"));
  REQUIRE(h.git("status").exit_code == 0);
  REQUIRE(h.git("sparse-checkout set --cone d10 d11 d12 d13").exit_code == 0);
  CHECK(h.repo->tracked_files().value() == 4);
  for (const char* gone : {"d10", "d11", "d12"})
    std::filesystem::remove_all(h.file(gone));
  CHECK_FALSE(state::check_deletions(*h.repo, h.repo->changes().value(), h.path));
}

TEST_CASE("field case 13: no file takes the place of entries that are kept out of the work tree") {
  git_home h;
  put(h.file("d/x"), "1\n");
  put(h.file("e"), "1\n");
  REQUIRE(h.commit_all("base"));
  REQUIRE(h.git("update-index --skip-worktree d/x e").exit_code == 0);
  std::filesystem::remove_all(h.file("d"));
  std::filesystem::remove(h.file("e"));
  put(h.file("d"), "in the way\n");
  put(h.file("e/y"), "in the way\n");
  put(h.file("good"), "1\n");
  REQUIRE(h.commit_all("next"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "d/x\ne\ngood\n");
  CHECK(h.repo->remarks().size() == 2);
  CHECK(h.repo->changes().value().empty());
  h.check_sound();
}

TEST_CASE("field case 13: gitlinks and what is only meant to be added lose nothing") {
  git_home h;
  put(h.file("F"), "1\n");
  REQUIRE(h.commit_all("base"));
  const auto head = h.git("rev-parse HEAD").text.substr(0, 40);
  REQUIRE(h.git("update-index --add --cacheinfo 160000," + head +
                ",sub && git -c user.name=p -c "
                "user.email=p commit -qm link")
              .exit_code == 0);
  put(h.file("meant"), "1\n");
  REQUIRE(h.git("add -N meant && git rm -q --cached F && git add -N F").exit_code == 0);
  put(h.file("good"), "1\n");
  REQUIRE(h.commit({{"good", change_kind::added}}, "beside them"));
  CHECK(h.git("ls-files -s meant").text.find("e69de29") != std::string::npos);
  CHECK(h.git("diff --name-only --diff-filter=A").text == "F\nmeant\n");
  REQUIRE(h.commit_all("all"));
  CHECK(h.git("ls-tree -r --name-only HEAD").text == "F\ngood\nmeant\nsub\n");
  put(h.file("sub"), "a file now\n");
  put(h.file("good"), "2\n");
  REQUIRE(h.commit_all("next"));
  CHECK(h.git("ls-tree HEAD sub").text.starts_with("160000"));
  h.check_sound();
}

} // namespace boyd::sparse_test
