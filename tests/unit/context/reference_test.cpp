#include "boyd/context/reference.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <random>
#include <string>
#include <vector>

namespace boyd::reference_test {

using namespace boyd::context;

namespace {

/// What counts as a reference in `text`; a question mark behind what must exist.
std::vector<std::string> references_in(std::string_view text) {
  std::vector<std::string> all;
  for (const auto& c : find_candidates(text)) {
    CHECK(c.offset + c.length <= text.size());
    if (c.verdict == reference_verdict::text)
      CHECK_FALSE(c.reason.empty());
    else
      all.push_back(to_text(c.what) + (c.verdict == reference_verdict::if_it_exists ? "?" : ""));
  }
  return all;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("references: files, lines, directories, commands and quoted forms", "[context]") {
  CHECK(references_in("Read @src/a.cpp:10-30, then #docs/.") ==
        texts{"@src/a.cpp:10-30", "#docs/"});
  CHECK(references_in("(see @README.md)") == texts{"@README.md"});
  CHECK(references_in("@a.txt:7 and @\"my notes.txt\":2-3") ==
        texts{"@a.txt:7", "@\"my notes.txt\":2-3"});
  CHECK(references_in("#\"old docs\" is a folder") == texts{"#\"old docs\""});
  CHECK(references_in("first\n@!git log -5\nlast @b.md") == texts{"@!git log -5", "@b.md"});
  CHECK(references_in("a word: @Makefile, #src") == texts{"@Makefile?", "#src?"});
  CHECK(references_in("資料 @doc/日本.md を読む") == texts{"@doc/日本.md"});
}

TEST_CASE("references: what is text stays text", "[context]") {
  for (const auto* text : {"mail me@example.org",
                           "# A heading",
                           "## Another",
                           "fixes #123",
                           "#include <a.h>",
                           "@app.route(\"/\")",
                           "`@a.txt` in code",
                           "``@a.txt ` #b/c``",
                           "```\n@a.txt\n```",
                           "~~~ sh\n@!rm -rf /\n~~~",
                           "\\@a.txt and \\#b/c",
                           "a # by itself @",
                           "C#/x",
                           "```\nnever closed @a.txt",
                           "#!/bin/sh",
                           "http://x/#/a.b",
                           "https://x/y?z=@a.b",
                           "@notes/{TIME}.md",
                           "@{STATE}",
                           "@pytest.mark.skip\ndef test():",
                           "  @app.get\n  @x.y\n  class A"}) {
    INFO(text);
    CHECK(references_in(text).empty());
  }
  CHECK(references_in("@pytest.mark.skip\nis a line of prose") == texts{"@pytest.mark.skip"});
  CHECK(references_in("a stray ` and @a.txt") == texts{"@a.txt"});
  CHECK(references_in("```\ncode\n```\n@a.txt") == texts{"@a.txt"});
  CHECK(references_in("@a.txt:30-10").empty());
  CHECK(unescape_signs("\\@a.txt, `\\@b` and \\#c/d") == "@a.txt, `\\@b` and #c/d");
}

TEST_CASE("references: a text whose signs are escaped has none, and comes back whole",
          "[context]") {
  std::mt19937 random(7);
  constexpr std::string_view letters = "@@##\"\\ /.ab!{}:1\n`(";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 24; n > 0; --n)
      text += letters[random() % letters.size()];
    const auto escaped = escape_signs(text);
    INFO(text << "\n-> " << escaped);
    REQUIRE(references_in(escaped).empty());
    REQUIRE(unescape_signs(escaped) == text);
  }
  // Each sign is looked at a few times, however many there are: this would take an hour otherwise.
  std::string many;
  for (int i = 0; i < 50'000; ++i)
    many += i % 3 == 0 ? "@app.get\n" : "see @a.txt and #src/b ";
  CHECK((unescape_signs(escape_signs(many)) == many));
  CHECK(escape_signs("mail a@b.org, see @\"@/etc/x\"") == "mail a@b.org, see \\@\"\\@/etc/x\"");
}

TEST_CASE("references: in a list everything is one", "[context]") {
  CHECK(parse_declared("@README.md") == reference{reference_kind::file, "README.md", 0, 0});
  CHECK(parse_declared("README") == reference{reference_kind::file, "README", 0, 0});
  CHECK(parse_declared(" #docs ") == reference{reference_kind::directory, "docs", 0, 0});
  CHECK(parse_declared("@a:b.txt:3") == reference{reference_kind::file, "a:b.txt", 3, 3});
  CHECK(parse_declared("@!git log") == reference{reference_kind::command, "git log", 0, 0});
  CHECK(parse_declared("@\"a b\":1-2") == reference{reference_kind::file, "a b", 1, 2});
  for (const auto* bad :
       {"", "@", "#", "@!", "@\"open", "@a:0", "@a:5-3", "@a:1-", "@\"a\"b", "a\nb"}) {
    INFO(bad);
    const auto r = parse_declared(bad);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::invalid_argument);
    CHECK_FALSE(r.error().next.empty());
  }
}

TEST_CASE("references: a command is words, and no shell reads it", "[context]") {
  const auto words = [](std::string_view line) {
    return words_of_command(line).value_or(std::vector<std::string>{"refused"});
  };
  CHECK(words("git log  -5 --format=%h") == texts{"git", "log", "-5", "--format=%h"});
  CHECK(words("sh -c 'ls | wc -l'") == texts{"sh", "-c", "ls | wc -l"});
  CHECK(words(R"(a "b \" c" d\ e '' x"y"z)") == texts{"a", "b \" c", "d e", "", "xyz"});
  CHECK(words("git show HEAD~2:a.txt") == texts{"git", "show", "HEAD~2:a.txt"});
  for (const auto* bad : {"a | b", "a; b", "a && b", "a > b", "echo $HOME", "ls *.md", "cd ~/x",
                          "a 'open", "a \\", "   ", "a `b`", "(a)"}) {
    INFO(bad);
    const auto r = words_of_command(bad);
    REQUIRE_FALSE(r);
    CHECK_FALSE(r.error().next.empty());
  }
}

TEST_CASE("references: written and read again they are the same", "[context]") {
  REQUIRE(rc::check([](const std::string& bytes, bool directory) {
    std::string path;
    for (const char c : bytes)
      if (c != '"' && c != '\n' && c != '\0' && c != ':' && c != '\r')
        path += c;
    path = "x" + path + "y";
    const reference r{directory ? reference_kind::directory : reference_kind::file, path, 0, 0};
    const auto again = parse_declared(to_text(r));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == r);
  }));
  REQUIRE(rc::check([](const std::string& text) { find_candidates(text); }));
}

} // namespace boyd::reference_test
