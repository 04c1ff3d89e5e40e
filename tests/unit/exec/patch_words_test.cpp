#include "boyd/exec/patch_words.hpp"
#include "support/pch.hpp"

using boyd::exec::read_patch;

TEST_CASE("patch words: paths and added lines of a diff", "[exec]") {
  const auto words = read_patch("diff --git a/src/a.cpp b/src/a.cpp\n"
                                "index 1..2 100644\n"
                                "--- a/src/a.cpp\n"
                                "+++ b/src/a.cpp\n"
                                "@@ -1,3 +1,3 @@ int main() {\n"
                                " one\n"
                                "--- a/no/path\n"
                                "+++ b/no/path\n"
                                " three\n"
                                "@@ -9 +9,2 @@\n"
                                "-nine\n"
                                "+ten\n"
                                "+eleven\n"
                                "\\ No newline at end of file\n"
                                "diff --git a/old name b/new name\n"
                                "similarity index 100%\n"
                                "rename from old name\n"
                                "rename to new name\n"
                                "diff --git a/gone b/gone\n"
                                "--- a/gone\n"
                                "+++ /dev/null\n"
                                "@@ -1 +0,0 @@\n"
                                "-bye\n");
  CHECK(words.paths == std::vector<std::string>{"gone", "new name", "old name", "src/a.cpp"});
  CHECK(words.added == "++ b/no/path\nten\neleven\n");
}

TEST_CASE("patch words: names that git quotes", "[exec]") {
  const auto words = read_patch("--- \"a/a\\303\\244.txt\"\n"
                                "+++ \"b/tab\\tquote\\\"slash\\\\.txt\"\n"
                                "@@ -1 +1 @@\n"
                                "-a\n"
                                "+b\n"
                                "--- a/two words\t\n"
                                "+++ /dev/null\n"
                                "rename to \"\\1end\\\"\n"
                                "rename from \"open\n");
  CHECK(words.paths == std::vector<std::string>{"\1end\\", "\"open", "a\303\244.txt",
                                                "tab\tquote\"slash\\.txt", "two words"});
}

TEST_CASE("patch words: what is no diff says nothing", "[exec]") {
  for (const auto* text : {"", "\n", "hello\n+world", "@@", "@@ -x +y @@\n+z", "+++ /dev/null"}) {
    CAPTURE(text);
    CHECK(read_patch(text).paths.empty());
  }
  CHECK(read_patch("@@ -1,99999999999999999999 +1,2 @@\n+a\n+b").added == "a\nb\n");
}
