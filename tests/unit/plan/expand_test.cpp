#include "boyd/plan/expand.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::expand_test {

using namespace boyd;
using plan::expand;

namespace {

/// Text in which braces, names and near misses are common.
rc::Gen<std::string> arbitrary_text() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "{STATE}", "{GOAL}", "{RECENT_RESULTS}", "{TIME}", "{MEMORY}", "{SKILLS}", "{SENSES}",
          "{", "}", "STATE", "{UNKNOWN}", "{state}", "${X}", "a\n", "")),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const auto& part : parts)
          text += part;
        return text;
      });
}

} // namespace

TEST_CASE("every placeholder is replaced, everything else stays") {
  const plan::placeholder_values v{"s", "g", "r", "t", "m", "e", "", "k"};
  CHECK(*expand("{STATE}{GOAL}{RECENT_RESULTS}{TIME}{MEMORY}{SKILLS}{SENSES}", v) == "sgrtmke");
  CHECK(*expand("{UNKNOWN} {state} { STATE} {STATE", v) == "{UNKNOWN} {state} { STATE} {STATE");
  CHECK(*expand("{{STATE}} {STATE}}", v) == "{s} s}");
  CHECK(expand("", v)->empty());
}

TEST_CASE("text that arrives through a placeholder is never expanded") {
  REQUIRE(rc::check("one pass", [] {
    // Marks stand for the values first; putting the values in afterwards must give the same.
    const plan::placeholder_values marks{"\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x07"};
    plan::placeholder_values values;
    std::vector<std::string> all(7);
    for (auto& value : all)
      value = *arbitrary_text();
    values = {all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
    const auto text = *arbitrary_text();
    const std::string marked = *expand(text, marks);
    std::string wanted;
    for (const char c : marked) {
      if (c >= 1 && c <= 7)
        wanted += all[static_cast<std::size_t>(c - 1)];
      else
        wanted += c;
    }
    RC_ASSERT(*expand(text, values) == wanted);
  }));
}

TEST_CASE("text without placeholders is its own expansion") {
  REQUIRE(rc::check("identity", [](const std::string& text) {
    RC_ASSERT(*expand(text, {"s", "g", "r", "t", "m", "k", "e"}) == text);
  }));
}

TEST_CASE("an expansion is bounded before it is made") {
  plan::placeholder_values v;
  v.state = std::string(1000, 'x');
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "{STATE}";
  const auto out = expand(text, v, 999'999);
  REQUIRE_FALSE(out.has_value());
  CHECK(out.error().code == errc::limit_exceeded);
  CHECK(expand(text, v, 1'000'000)->size() == 1'000'000);
}

} // namespace boyd::expand_test
