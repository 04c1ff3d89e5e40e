#include "boyd/state/versioned_store.hpp"
#include "integration/git/fixture.hpp"
#include "integration/git/real_store.hpp"

#include <algorithm>
#include <sys/stat.h>

namespace boyd::inside_test {

using namespace boyd;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

/// Everything below a directory, with the sizes of files: what a write there would change.
std::string picture(const std::string& dir) {
  return shell(dir, "find . -printf '%p %s %T@\n' | sort").text;
}

/// Moves a part of .git out of the home and puts a link to it in its place.
void link_out(const git_home& h, const std::string& part, const std::string& outside) {
  const auto done =
      shell(h.path, "mkdir -p '" + outside + "' && if [ -e .git/" + part + " ]; then mv .git/" +
                        part + " '" + outside + "/it'; else mkdir '" + outside +
                        "/it'; fi && ln -s '" + outside + "/it' .git/" + part);
  INFO(done.text);
  REQUIRE(done.exit_code == 0);
}

std::string why(const result<std::unique_ptr<repository>>& opened) {
  return opened ? std::string() : to_string(opened.error());
}

} // namespace

TEST_CASE("case R4: nothing is written through a link inside .git") {
  const std::string part =
      GENERATE(as<std::string>{}, "refs", "refs/heads", "refs/heads/main", "objects",
               "objects/pack", "objects/info", "objects/ab", "logs", "logs/HEAD", "logs/refs/heads",
               "index", "index.lock", "HEAD", "config", "packed-refs", "info", "info/exclude",
               "boyd-exclude", "refs/heads/main.lock", "refs/tags");
  const bool open_already = GENERATE(true, false);
  INFO(part);
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("one"));
  if (!open_already)
    h.repo.reset();
  const auto outside = h.root.file("outside");
  link_out(h, part, outside);
  const auto before = picture(outside);
  put(h.file("a"), "2\n");
  if (open_already) {
    const auto changes = h.repo->changes();
    REQUIRE_FALSE(changes);
    CHECK(changes.error().code == errc::repository_unavailable);
    CHECK_FALSE(h.repo->stage({{"a", change_kind::modified}}));
    CHECK_FALSE(h.repo->commit({{"a", change_kind::modified}}, "two", at(noon)));
    CHECK_FALSE(h.repo->pack());
  }
  for (const auto& opened : {h.provider->open(h.path, h.who), h.provider->init(h.path, h.who)}) {
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == errc::repository_unavailable);
    CHECK_THAT(why(opened), Contains(".git/" + part) && Contains("symbolic link") &&
                                Contains("history then continues by itself"));
  }
  CHECK(picture(outside) == before);
}

TEST_CASE("case R4: a pipe inside .git holds nobody up") {
  const std::string part = GENERATE(as<std::string>{}, "HEAD", "config", "packed-refs",
                                    "refs/heads/other", "logs/HEAD", "index", "info/exclude");
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("one"));
  REQUIRE(shell(h.path, "rm -f .git/" + part + " && mkfifo .git/" + part).exit_code == 0);
  const auto opened = h.provider->open(h.path, h.who);
  CHECK_THAT(why(opened), Contains("pipe") && Contains(".git/" + part));
}

TEST_CASE("case R4: a reflog that is another file's second name is not written") {
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("one"));
  const auto outside = h.root.file("outside");
  put(outside, "mine\n");
  for (const char* log : {"HEAD", "refs/heads/main"})
    REQUIRE(shell(h.path,
                  "rm .git/logs/" + std::string(log) + " && ln '" + outside + "' .git/logs/" + log)
                .exit_code == 0);
  put(h.file("a"), "2\n");
  REQUIRE(h.commit_all("two"));
  CHECK(get(outside) == "mine\n");
}

TEST_CASE("case R4: a person's own links in .git do not matter, and history comes back") {
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("one"));
  REQUIRE(shell(h.path, "rm -rf .git/hooks && mkdir ../hooks && ln -s ../../hooks .git/hooks && "
                        "ln -sf nowhere .git/description")
              .exit_code == 0);
  put(h.file("a"), "2\n");
  REQUIRE(h.commit_all("two"));
  REQUIRE(shell(h.path, "mv .git/refs .git/r && ln -s r .git/refs").exit_code == 0);
  CHECK_FALSE(h.repo->head());
  REQUIRE(shell(h.path, "rm .git/refs && mv .git/r .git/refs").exit_code == 0);
  put(h.file("a"), "3\n");
  REQUIRE(h.commit_all("three"));
  CHECK(h.subjects() == std::vector<std::string>{"three", "two", "one"});
  h.check_sound();
}

TEST_CASE("case R4: with a link in .git the history is off and says so, and files are written") {
  real_store h;
  REQUIRE(h.store.write("notes.md", "1\n"));
  REQUIRE(h.store.commit_all("one", {}));
  link_out(h, "refs", h.root.file("outside"));
  REQUIRE(h.store.write("notes.md", "2\n"));
  CHECK(h.store.health().degraded);
  CHECK_THAT(h.store.health().reason, Contains("symbolic link") && Contains(".git/refs"));
  CHECK(get(h.file("notes.md")) == "2\n");
}

} // namespace boyd::inside_test
