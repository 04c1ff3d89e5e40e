#include "boyd/tools/glob.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::glob_test {

using namespace boyd::tools;

namespace {

/// The rules written down as they are read, tried one after the other.
bool plain(std::string_view p, std::string_view t, bool path, bool at_beginning = true) {
  if (path && p == "/**" && (t.empty() || t.front() == '/'))
    return true;
  if (p.empty())
    return t.empty();
  if (path && at_beginning && p.starts_with("**/")) {
    if (plain(p.substr(3), t, path, true))
      return true;
    for (std::size_t i = 0; i < t.size(); ++i)
      if (t[i] == '/' && plain(p.substr(3), t.substr(i + 1), path, true))
        return true;
    return false;
  }
  if (p.front() == '*') {
    const bool across = !path || p.starts_with("**");
    const auto rest = p.substr(p.starts_with("**") ? 2 : 1);
    for (std::size_t i = 0;; ++i) {
      if (plain(rest, t.substr(i), path, false))
        return true;
      if (i == t.size() || (!across && t[i] == '/'))
        return false;
    }
  }
  if (t.empty() || (p.front() != '?' && p.front() != t.front()) ||
      (p.front() == '?' && path && t.front() == '/'))
    return false;
  return plain(p.substr(1), t.substr(1), path, p.front() == '/');
}

std::string letters(const std::vector<std::uint8_t>& picks, std::string_view alphabet,
                    std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < picks.size() && i < most; ++i)
    text += alphabet[picks[i] % alphabet.size()];
  return text;
}

} // namespace

TEST_CASE("patterns match whole paths by their documented rules", "[tools][glob]") {
  const std::vector<std::pair<std::string, std::string>> yes{
      {"", ""},
      {"a", "a"},
      {"*", "abc"},
      {"*.md", "x.md"},
      {"src/*.cpp", "src/a.cpp"},
      {"src/**", "src/a/b"},
      {"src/**", "src"},
      {"src/**", "src/"},
      {"**", "."},
      {"**/.env", ".env"},
      {"**/.env", "a/b/.env"},
      {"a/**/b", "a/b"},
      {"a/**/b", "a/x/y/b"},
      {"**/**/**/x", "x"},
      {"?", "\xC3\xA4"},
      {"\xC3\xA4*", "\xC3\xA4x"},
      {"mcp__files__*", "mcp__files__read"},
      {"**.key", "a/b.key"},
      {"a[1]{b}", "a[1]{b}"},
  };
  for (const auto& [pattern, text] : yes) {
    INFO(pattern << " on " << text);
    CHECK(glob_matches(pattern, text));
  }
  const std::vector<std::pair<std::string, std::string>> no{
      {"", "a"},
      {"a", ""},
      {"*", "a/b"},
      {"*.md", "a/x.md"},
      {"src/*", "src"},
      {"src/*", "src/a/b"},
      {"src/**", "srcs/a"},
      {"?", "/"},
      {"?", "ab"},
      {"**/.env", "x.env"},
      {"a/**/b", "ab"},
      {"A", "a"},
      {"a\\*", "a*b"},
  };
  for (const auto& [pattern, text] : no) {
    INFO(pattern << " on " << text);
    CHECK_FALSE(glob_matches(pattern, text));
  }
  CHECK(glob_matches("git *", "git log a/b", glob_text::command));
  for (const auto* beginning : {"", "g", "git", "git ", "git log"})
    CHECK(glob_continues("git *", beginning, glob_text::command));
  CHECK_FALSE(glob_continues("git *", "go", glob_text::command));
  CHECK_FALSE(glob_continues("git", "git ", glob_text::command));
  CHECK(glob_matches("?", "/", glob_text::command));
  CHECK_FALSE(glob_matches("git/**", "git", glob_text::command));
}

TEST_CASE("patterns match what the plain reading of their rules matches", "[tools][glob]") {
  CHECK(
      rc::check("glob", [](const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
        const auto pattern = letters(a, "a*/?b*/*", 12);
        const auto text = letters(b, "ab/a", 10);
        RC_ASSERT(glob_matches(pattern, text) == plain(pattern, text, true));
        RC_ASSERT(glob_matches(pattern, text, glob_text::command) == plain(pattern, text, false));
      }));
}

TEST_CASE("hostile patterns cost no more than their length times the text's", "[tools][glob]") {
  std::string stars;
  for (int i = 0; i < 300; ++i)
    stars += "*a**a";
  // Exponential for whoever goes back: the test would not end.
  CHECK_FALSE(glob_matches(stars + "b", std::string(4000, 'a')));
  CHECK_FALSE(glob_matches(stars + "b", std::string(4000, 'a'), glob_text::command));
  std::string directories;
  for (int i = 0; i < 100'000; ++i)
    directories += "**/";
  CHECK(glob_matches(directories + "x", "a/b/x"));
  CHECK_FALSE(glob_matches(directories + "x", "a/b/y"));
}

} // namespace boyd::glob_test
