#include "integration/git/fixture.hpp"

namespace boyd::surroundings_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("case W12: a .git that leads to no repository does not refuse a home below it") {
  const temp_dir root;
  const std::string p = root.file("p");
  std::filesystem::create_directories(p);
  const std::string made =
      GENERATE(as<std::string>{}, "mkdir .git", "touch .git", "echo garbage > .git",
               "echo 'gitdir: /nowhere/at/all' > .git", "echo 'gitdir: ' > .git",
               "mkdir -p .git/hooks && echo '[core]' > .git/config",
               "mkdir .git && echo 'ref: refs/heads/main' > .git/HEAD", "ln -s nowhere .git",
               "ln -s .git .git", "mkfifo .git", "mkdir e && echo 'gitdir: e' > .git");
  CAPTURE(made);
  REQUIRE(shell(p, made).exit_code == 0);
  const auto provider = adapters::make_git_repositories();
  const auto done = provider->init(p + "/h", git_identity{});
  INFO((done ? std::string() : to_string(done.error())));
  CHECK(done);
}

TEST_CASE("case W12: a true repository above refuses a home, also behind an empty .git") {
  const temp_dir root;
  const std::string p = root.file("p");
  std::filesystem::create_directories(p);
  const std::string made = GENERATE(
      as<std::string>{}, "git init -q .", "git init -q --separate-git-dir ../elsewhere .",
      "git init -q .. && mkdir .git", "git init -q . && rm .git/HEAD", "git init -q --bare .",
      "git init -q ../m && git -C ../m -c user.name=a -c user.email=a@b commit -q --allow-empty "
      "-m 1 && git -C ../m worktree add -q --detach ../p/w && mv w/.git .");
  CAPTURE(made);
  const auto setup = shell(p, made);
  INFO(setup.text);
  REQUIRE(setup.exit_code == 0);
  const auto provider = adapters::make_git_repositories();
  const auto done = provider->init(p + "/h", git_identity{});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::refused);
}

} // namespace boyd::surroundings_test
