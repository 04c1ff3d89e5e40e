#include "support/pch.hpp"
#include "unit/house/rules.hpp"

#include <cstdlib>

namespace boyd::house_rules_test {

namespace {

const house::source_tree& tree() {
  static const auto read = [] {
    const char* top = std::getenv("BOYD_SOURCE_DIR");
    return house::read_tree(top != nullptr ? top : ".");
  }();
  return read;
}

std::string joined(const house::findings& found) {
  std::string text;
  for (const auto& line : found)
    text += "\n  " + line;
  return text;
}

} // namespace

TEST_CASE("the source tree is read", "[house]") {
  CHECK(tree().contains("CMakeLists.txt"));
  CHECK(tree().contains("include/boyd/core/result.hpp"));
  CHECK(tree().contains("tests/unit/house/house_rules_test.cpp"));
  CHECK_FALSE(tree().at("include/boyd/core/result.hpp").inclusions.empty());
}

TEST_CASE("the source tree keeps the house rules", "[house]") {
  for (const auto& rule : house::all_rules()) {
    INFO("rule: " << rule.name);
    const auto found = rule.check(tree());
    CHECK(joined(found) == "");
  }
}

TEST_CASE("every house rule can fail", "[house]") {
  for (const auto& rule : house::all_rules()) {
    INFO("rule: " << rule.name);
    CHECK_FALSE(rule.broken_by.empty());
    for (const auto& broken : rule.broken_by)
      CHECK(rule.check(broken).size() == 1);
  }
}

TEST_CASE("comments and literals are not code", "[house]") {
  using house::without_comments_and_literals;
  CHECK(without_comments_and_literals("a // b\nc") == "a     \nc");
  CHECK(without_comments_and_literals("a /* b\n */c") == "a     \n   c");
  CHECK(without_comments_and_literals(R"x(f("a\"b", 'c', 1'000))x") ==
        R"x(f(      ,    , 1'000))x");
  CHECK(without_comments_and_literals("R\"y(a\")\")y\"+b") == "           +b");
  CHECK(without_comments_and_literals("\"open\nnext") == "     \nnext");
}

} // namespace boyd::house_rules_test
