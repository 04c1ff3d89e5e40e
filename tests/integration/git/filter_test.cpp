#include "fixture.hpp"
#include "support/pch.hpp"

#include <filesystem>

namespace boyd::filter_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::string without_x(std::string text) {
  std::replace(text.begin(), text.end(), 'x', '-');
  return text;
}

} // namespace

TEST_CASE("contents pass the filter on their way into the history, files stay as they are") {
  git_home h;
  h.repo->filter_contents(without_x);
  put(h.file("plain"), "a");
  put(h.file("notes"), "axb");
  put(h.file("name-x"), "a");
  std::filesystem::create_symlink("to-x", h.file("link"));
  REQUIRE(h.commit_all("one"));
  CHECK(h.git("ls-files").text == "link\nnotes\nplain\n");
  CHECK(h.git("show HEAD:notes").text == "a-b");
  CHECK(h.git("show HEAD:link").text == "to--");
  CHECK(get(h.file("notes")) == "axb");
  CHECK(h.repo->filtered() == std::vector<std::string>{"link", "name--", "notes"});
  // Nothing new: nothing to commit, though the files are not what the history has.
  CHECK_FALSE(h.commit_all("two"));
  CHECK(h.git("status --porcelain").text == " M link\n M notes\n?? name-x\n");
  REQUIRE(h.repo->stage({{"notes", change_kind::modified}}));
  CHECK(h.git("show :notes").text == "a-b");
  put(h.file("notes"), "ab");
  std::filesystem::remove(h.file("link"));
  std::filesystem::remove(h.file("name-x"));
  REQUIRE(h.commit_all("three"));
  CHECK(h.repo->filtered().empty());
  h.check_clean();
  h.check_sound();
}

TEST_CASE("a file that is too large for the filter is kept as it is") {
  git_home h;
  h.repo->filter_contents(without_x);
  put(h.file("large"), std::string(filtered_bytes + 1, 'x'));
  REQUIRE(h.commit_all("one"));
  CHECK(h.repo->filtered().empty());
  h.check_clean();
}

} // namespace boyd::filter_test
