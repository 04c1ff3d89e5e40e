#include "boyd/improve/patch.hpp"
#include "support/pch.hpp"
#include "tree_lab.hpp"

#include <nlohmann/json.hpp>

namespace boyd::proposal_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

const std::string before = "one\ntwo\nthree\nfour\n";

/// The content that the answer gives to a.txt, or why it is refused.
std::string outcome(const result<proposal>& p) {
  if (!p)
    return to_string(p.error());
  if (p->changes.size() != 1)
    return std::to_string(p->changes.size()) + " changes";
  const auto after = apply_diff(before, p->changes[0].diff);
  return after ? *after : to_string(after.error());
}

std::string diff(const std::string& hunk) {
  return "--- a/a.txt\n+++ b/a.txt\n" + hunk;
}

const std::string body = " one\n-two\n+TWO\n three\n";
const std::string after = "one\nTWO\nthree\nfour\n";

} // namespace

TEST_CASE("a diff that changes JSON is a diff") {
  const std::string json = "--- a/a.json\n+++ b/a.json\n@@ -1 +1,2 @@\n-{\"files\": []}\n"
                           "+{\"files\": [{\"path\": \"x\", \"action\": \"delete\"}]}\n+\n";
  for (const auto& p : {read_diff(json), read_proposal(json), read_proposal("Here:\n" + json)}) {
    REQUIRE(p.has_value());
    REQUIRE(p->changes.size() == 1);
    CHECK(p->changes[0].path == "a.json");
    CHECK(p->changes[0].action == planned_change::action_t::modify);
  }
  // And an answer that holds a diff is an answer.
  const auto answer = read_proposal(
      R"({"summary": "s", "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n"})");
  REQUIRE(answer.has_value());
  CHECK(answer->summary == "s");
}

TEST_CASE("a hunk is as long as its numbers say") {
  CHECK(outcome(read_proposal(diff("@@ -1,3 +1,3 @@\n" + body))) == after);
  CHECK(outcome(read_proposal(diff("@@ -1,3 +1,3 @@ in main\n" + body + "\nThat is all.\n"))) ==
        after);
  // A mail's signature is no line of it.
  CHECK(outcome(read_proposal(diff("@@ -1,3 +1,3 @@\n" + body + "-- \n2.39.2\n"))) == after);
  // Lines that look like the head of a file belong to a hunk that is not over.
  const auto heads = read_diff("--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n");
  REQUIRE(heads.has_value());
  CHECK(heads->changes.size() == 1);
}

TEST_CASE("wrong numbers count where it is certain how long the hunk is, and nowhere else") {
  const auto wrong = diff("@@ -1,9 +1,1 @@\n" + body);
  const auto fence = "```diff\n" + wrong + "```\nThat is all.\n";
  CHECK(outcome(read_proposal(fence)) == after);
  CHECK(outcome(read_diff(wrong)) == after);
  CHECK(outcome(read_proposal(wrong + "@@ -4,1 +4,1 @@\n-four\n+FOUR\n")) ==
        "one\nTWO\nthree\nFOUR\n");
  // The answer may have been cut here.
  CHECK_THAT(outcome(read_proposal(wrong)), Contains("numbers say") && Contains("a.txt"));
  // A list in the words behind it is not taken for lines to delete.
  CHECK_THAT(outcome(read_proposal(diff("@@ -1,3 +1,3 @@\n" + body + "- it was two\n"))),
             Contains("numbers say"));
  CHECK_THAT(outcome(read_proposal(diff("@@ -1,3 +1,3 @@\n one\n-two\n"))),
             Contains("numbers say"));
}

TEST_CASE("a patch cannot put [redacted] in the place of a secret that it was not shown") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  const test::tree_lab lab;
  lab.put("a.cfg", "key = " + key + "\nport = 1\n");
  lab.put("b.md", "[redacted] is a word\n");
  const auto judged = [&](const std::string& path, const std::string& content) {
    const auto p = read_proposal(
        nlohmann::json{{"files", {{{"path", path}, {"action", "modify"}, {"content", content}}}}}
            .dump());
    REQUIRE(p.has_value());
    const auto patch = judge_patch(*p, lab.rules(), *lab.tree, *lab.inside);
    return patch ? std::string("good") : to_string(patch.error());
  };
  CHECK_THAT(judged("a.cfg", "key = [redacted]\nport = 2\n"), Contains("not shown"));
  CHECK(judged("a.cfg", "key = " + key + "\nport = 2\n") == "good");
  CHECK(judged("b.md", "[redacted] and [redacted] are words\n") == "good");
}

} // namespace boyd::proposal_test
