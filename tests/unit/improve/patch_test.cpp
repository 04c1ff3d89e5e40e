#include "boyd/improve/patch.hpp"
#include "hostile_patches.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <array>
#include <set>
#include <utility>

namespace boyd::patch_test {

using namespace boyd::improve;
using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::string joined(const std::vector<std::string>& lines, bool ends) {
  std::string text;
  for (const auto& l : lines)
    text += l + "\n";
  if (!ends && !text.empty())
    text.pop_back();
  return text;
}

} // namespace

TEST_CASE("a diff that is shown can be applied again") {
  const auto ok = rc::check([] {
    const auto line = rc::gen::element<std::string>("a", "b", "", "-- x", "+y", "c");
    const auto before =
        joined(*rc::gen::container<std::vector<std::string>>(line), *rc::gen::arbitrary<bool>());
    const auto after =
        joined(*rc::gen::container<std::vector<std::string>>(line), *rc::gen::arbitrary<bool>());
    if (before == after || before.empty() || after.empty())
      return;
    const auto diff = render_diff("f", before, after);
    const auto again = apply_diff(before, diff);
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == after);
    RC_ASSERT(measure_diff(before, after, 1000).lines > 0U);
  });
  CHECK(ok);
}

TEST_CASE("a hunk may have moved, but must fit exactly and once") {
  CHECK(apply_diff("x\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n").value_or("") ==
        "x\na\nB\nc\n");
  const auto twice = apply_diff("x\na\nb\na\nb\n", "@@ -9,2 +9,2 @@\n a\n-b\n+B\n");
  REQUIRE_FALSE(twice.has_value());
  CHECK_THAT(twice.error().what, Contains("several places"));
  CHECK_FALSE(apply_diff("a\n", "@@ -1 +1 @@\n-b\n+c\n").has_value());
  CHECK(apply_diff("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n").value_or("") ==
        "a\nb\n");
  CHECK_FALSE(apply_diff("a\n", "no hunk\n").has_value());
}

TEST_CASE("answers in every form are read") {
  const std::string diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
  const std::array answers{patch_of("f", "modify", "b\n"),
                           "Here it is:\n```json\n" + patch_of("f", "modify", "b\n") + "\n```\n",
                           json{{"diff", diff}}.dump(),
                           diff,
                           "Sure!\n```diff\n" + diff + "```\nDone.\n",
                           "diff --git a/f b/f\nindex 1..2 100644\n" + diff};
  for (const auto& a : answers) {
    INFO(a);
    tree_lab lab;
    lab.put("f", "a\n", 0755);
    const auto p = lab.judge(a);
    INFO((p ? std::string() : to_string(p.error())));
    REQUIRE(p.has_value());
    CHECK(p->changes.front().after == "b\n");
    CHECK(p->changes.front().mode == 0755);
    CHECK(p->diff_lines == 2);
  }
}

TEST_CASE(
    "case 48 patch-dotgit: hostile patches are refused with a reason, and nothing is written") {
  const auto hostile = hostile_patches();
  CHECK(hostile.size() >= 40);
  tree_lab lab;
  put_targets(lab);
  lab.put(".git/config", "[core]\n");
  const auto before = lab.print();
  for (const auto& [answer, reason] : hostile) {
    INFO(answer.substr(0, 200));
    const auto p = lab.judge(answer);
    REQUIRE_FALSE(p.has_value());
    CHECK_THAT(to_string(p.error()), Contains(reason));
  }
  CHECK((lab.print() == before));
}

TEST_CASE("what nobody sees is shown, and what a file has already stays") {
  CHECK(with_hidden_shown("a\tb\r\n\x1b[1m\xE2\x80\xAE\xD8\x9C\xC2\x85\xC3\xA9\xE2\x80\xA6\n") ==
        "a\tb\r\n<U+001B>[1m<U+202E><U+061C><U+0085>\xC3\xA9\xE2\x80\xA6\n");
  CHECK(with_hidden_shown("\xE2\x80") == "\xE2\x80");
  tree_lab lab;
  lab.put("f", "a\f\r\n");
  CHECK(lab.judge(patch_of("f", "modify", "b\f\r\nc\r\n")).has_value());
  CHECK_FALSE(lab.judge(patch_of("f", "modify", "b\f\f\r\n")).has_value());
}

TEST_CASE("a patch is applied and taken back to the last bit") {
  tree_lab lab;
  lab.put("a", "old\n", 0640);
  lab.put("gone", "bye\n", 0755);
  lab.put("stays", "x\n");
  const auto before = lab.print();
  const auto p = lab.judge(json{{"files",
                                 {{{"path", "a"}, {"action", "modify"}, {"content", "new\n"}},
                                  {{"path", "d/e/new"}, {"action", "create"}, {"content", "n\n"}},
                                  {{"path", "gone"}, {"action", "delete"}}}}}
                               .dump());
  REQUIRE(p.has_value());
  auto undo = lab.undo();
  REQUIRE(undo.apply("c", *p).has_value());
  CHECK(lab.get("a") == "new\n");
  CHECK(lab.get("d/e/new") == "n\n");
  CHECK_FALSE(std::filesystem::exists(lab.path("gone")));
  CHECK(undo.stands("c").value_or(false));
  CHECK_FALSE(undo.apply("c", *p).has_value());
  CHECK((undo.open_cycles().value_or(std::vector<std::string>{}) == std::vector<std::string>{"c"}));
  const auto back = undo.roll_back("c");
  REQUIRE(back.has_value());
  CHECK(back->kept.empty());
  CHECK((lab.print() == before));
  CHECK(undo.open_cycles().value_or(std::vector<std::string>{"?"}).empty());
}

TEST_CASE("what a person changed meanwhile is left alone, and what was there is kept") {
  tree_lab lab;
  lab.put("a", "old\n");
  lab.put("b", "old\n");
  lab.put("gone", "bye\n");
  const auto p = lab.judge(json{{"files",
                                 {{{"path", "a"}, {"action", "modify"}, {"content", "new\n"}},
                                  {{"path", "b"}, {"action", "modify"}, {"content", "new\n"}},
                                  {{"path", "made"}, {"action", "create"}, {"content", "n\n"}},
                                  {{"path", "gone"}, {"action", "delete"}}}}}
                               .dump());
  REQUIRE(p.has_value());
  auto undo = lab.undo();
  REQUIRE(undo.apply("c", *p).has_value());
  lab.put("a", "mine\n");
  lab.put("made", "mine, too\n");
  lab.put("gone", "here again\n");
  CHECK_FALSE(undo.stands("c").value_or(true));
  const auto back = undo.roll_back("c");
  REQUIRE(back.has_value());
  CHECK((std::set<std::string>(back->kept.begin(), back->kept.end()) ==
         std::set<std::string>{"a", "gone", "made"}));
  CHECK(lab.get("a") == "mine\n");
  CHECK(lab.get("b") == "old\n");
  CHECK(lab.get("made") == "mine, too\n");
  CHECK(lab.get("gone") == "here again\n");
  std::set<std::string> originals;
  for (const auto& e : std::filesystem::directory_iterator(back->originals))
    if (e.path().filename() != "kept.json") {
      std::ifstream in(e.path());
      originals.insert({std::istreambuf_iterator<char>(in), {}});
    }
  CHECK(originals.contains("old\n"));
  CHECK(originals.contains("bye\n"));
}

TEST_CASE("case 50 patch-base-moved: a file that changed after the gate is not touched, nor is any "
          "other") {
  tree_lab lab;
  lab.put("a", "old\n");
  lab.put("b", "old\n");
  const auto p = lab.judge(json{{"files",
                                 {{{"path", "a"}, {"action", "modify"}, {"content", "new\n"}},
                                  {{"path", "b"}, {"action", "modify"}, {"content", "new\n"}}}}}
                               .dump());
  REQUIRE(p.has_value());
  lab.put("b", "a person's\n");
  const auto before = lab.print();
  auto undo = lab.undo();
  const auto done = undo.apply("c", *p);
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().code == errc::conflict);
  CHECK((lab.print() == before));
  std::filesystem::remove(lab.path("b"));
  REQUIRE(::symlink("/etc/hostname", lab.path("b").c_str()) == 0);
  const auto linked = lab.print();
  CHECK_FALSE(undo.apply("d", *p).has_value());
  CHECK((lab.print() == linked));
}

} // namespace boyd::patch_test
