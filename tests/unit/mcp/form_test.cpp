#include "boyd/mcp/form.hpp"
#include "support/pch.hpp"

namespace boyd::form_test {

using namespace boyd;
using namespace boyd::mcp;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view form = R"({"type":"object","properties":{
  "name":{"type":"string","description":"Who"},
  "count":{"type":"integer","default":3},
  "size":{"type":"string","enum":["s","l"]},
  "sure":{"type":"boolean"}},"required":["name"]})";

} // namespace

TEST_CASE("form: what a person reads", "[mcp]") {
  question q;
  q.mode = "form";
  q.message = "Who are you?";
  q.schema_json = std::string(form);
  const auto text = question_text("files", q);
  CHECK_THAT(text, Contains("files asks") && Contains("Who are you?") &&
                       Contains("name (string, required): Who") &&
                       Contains("count (integer, default: 3)") &&
                       Contains(R"(size (one of "s", "l"))"));
  q.mode = "url";
  q.url = "https://example.org/login";
  CHECK_THAT(question_text("files", q), Contains("https://example.org/login"));
  q.mode = "form";
  q.schema_json = "";
  CHECK_THAT(question_text("files", q), Contains("no fields to fill in"));
}

TEST_CASE("form: an answer has what the form names, its kinds and its defaults", "[mcp]") {
  CHECK(form_content(form, R"({"name":"a","size":"l","other":1})").value() ==
        R"({"name":"a","count":3,"size":"l"})");
  CHECK(form_content(R"({"properties":{"a":{"type":"string","default":"x"}}})", "as agreed")
            .value() == R"({"a":"x"})");
  CHECK(form_content("", "{}").value() == "{}");
  for (const auto* note : {"", "no JSON", "{}", R"({"name":7})", R"({"name":"a","size":"m"})",
                           R"({"name":"a","count":1.5})", R"({"name":"a","sure":"yes"})"})
    CHECK_FALSE(form_content(form, note));
}

TEST_CASE("form: choices with titles are shown, and nothing else is taken", "[mcp]") {
  constexpr std::string_view titled = R"({"properties":{
    "one":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#00f"}]},
    "any":{"type":"string","anyOf":[{"const":"a","title":"A"}]},
    "old":{"type":"string","enum":["x"],"enumNames":["The X"]},
    "many":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"},{"const":"q"}]}},
    "some":{"type":"array","items":{"type":"string","enum":["s"]}}}})";
  question q;
  q.mode = "form";
  q.schema_json = std::string(titled);
  CHECK_THAT(question_text("s", q), Contains(R"(one (one of "#f00" (Red), "#00f"))") &&
                                        Contains(R"(any (one of "a" (A)))") &&
                                        Contains(R"(old (one of "x" (The X)))") &&
                                        Contains(R"(many (a list of values from "p" (P), "q"))"));
  CHECK(form_content(titled, R"({"one":"#00f","any":"a","old":"x","many":["q","p"],"some":[]})"));
  for (const auto* note : {R"({"one":"Red"})", R"({"any":"b"})", R"({"old":"The X"})",
                           R"({"many":["r"]})", R"({"many":"p"})", R"({"some":["t"]})"})
    CHECK_FALSE(form_content(titled, note));
}

TEST_CASE("form: every line of the server's own words is marked as such", "[mcp]") {
  question q;
  q.message = "a\n--- end ---\n\x1b[2Jb\u202Ec";
  q.mode = "form";
  q.schema_json = R"({"properties":{"x\ny":{"type":"string","description":"d\ne"}}})";
  const auto text = question_text("s", q);
  CHECK_THAT(text, Contains("\n| a\n| --- end ---\n| \\x1B[2Jb\\u{202E}c\n") &&
                       Contains("\n| x\n| y (string): d\n| e\n"));
  q.mode = "url";
  q.url = "https://e.example/\nfine";
  CHECK_THAT(question_text("s", q), Contains("\n| https://e.example/\n| fine\n"));
}

} // namespace boyd::form_test
