#include "boyd/exec/requirements.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::schema_check_test {

using namespace boyd;
using namespace boyd::exec;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// What is found about a value; empty: it validates.
std::string found(const std::string& schema, const json& value) {
  const auto checked = check_schema("s", schema, value.dump(), "");
  return checked.passed ? std::string{} : checked.text;
}

constexpr std::size_t a_megabyte = 1u << 20;

} // namespace

TEST_CASE("schemas: a pattern is checked against a text of any length") {
  const std::string schema = R"({"properties":{"d":{"type":"string","pattern":"^[a-z ]*$"}}})";
  CHECK(found(schema, {{"d", std::string(a_megabyte, 'a')}}).empty());
  CHECK_THAT(found(schema, {{"d", std::string(a_megabyte, 'a') + "1"}}),
             Contains("[d]: does not match the pattern \"^[a-z ]*$\""));
  // What is no text has no pattern; a pattern holds anywhere in the text, by characters.
  CHECK(found(schema, {{"d", "x"}}).empty());
  CHECK(found(R"({"pattern":"^a"})", 3).empty());
  CHECK(found(R"({"pattern":"b"})", "abc").empty());
  CHECK(found(R"({"pattern":"^.\\u00e9$"})", "\u00fc\u00e9").empty());
}

TEST_CASE("schemas: no pattern takes exponential time") {
  CHECK_FALSE(found(R"({"pattern":"^(a+)+$"})", std::string(5'000, 'a') + "b").empty());
  CHECK_FALSE(
      found(R"({"patternProperties":{"^(a+)+$":{"type":"null"}},"additionalProperties":false})",
            {{std::string(5'000, 'a') + "b", 1}})
          .empty());
}

TEST_CASE("schemas: dates and times of any length") {
  const auto format = [](const std::string& name, const std::string& text) {
    return found(json{{"format", name}}.dump(), text).empty();
  };
  CHECK(format("date", "2024-02-29"));
  CHECK_FALSE(format("date", "2023-02-29"));
  CHECK_FALSE(format("date", std::string(a_megabyte, '1')));
  CHECK(format("time", "23:59:60.25Z"));
  CHECK_FALSE(format("time", "24:00:00Z"));
  CHECK_FALSE(format("time", "12:00:00." + std::string(a_megabyte, '1')));
  CHECK(format("date-time", "2024-02-29t01:02:03+02:00"));
  CHECK_FALSE(format("date-time", "2024-02-29 01:02:03Z"));
  CHECK_FALSE(format("date-time", "2024-02-30T01:02:03Z"));
  CHECK(format("no such format", "x"));
  CHECK(found(R"({"format":"date"})", 3).empty());
}

TEST_CASE("schemas: properties by pattern are told from others") {
  const std::string schema = R"({"properties":{"x_id":{"minimum":5}},
    "patternProperties":{"^x_":{"type":"integer"},"_s$":{"type":"string"}},
    "additionalProperties":false})";
  CHECK(found(schema, {{"x_a", 1}, {"b_s", "t"}, {"x_id", 5}}).empty());
  CHECK_THAT(found(schema, {{"x_a", "1"}}), Contains("[x_a]"));
  CHECK_THAT(found(schema, {{"x_id", 4}}), Contains("[x_id]"));
  CHECK_FALSE(found(schema, {{"x_s", 1}}).empty()); // both patterns hold for it
  CHECK_FALSE(found(schema, {{"other", 1}}).empty());
  CHECK_FALSE(found(schema, {{std::string(a_megabyte, 'x'), 1}}).empty());
  // In a schema that lies below a pattern, and where the names are words of the language.
  const std::string deep = R"({"patternProperties":{"^p":{"patternProperties":{"^pattern$":
    {"pattern":"^[0-9]$"}}}}})";
  CHECK(found(deep, {{"p", {{"pattern", "7"}}}}).empty());
  CHECK_FALSE(found(deep, {{"p", {{"pattern", "x"}}}}).empty());
  CHECK(found(R"({"enum":[{"pattern":"x","format":"y"}]})", {{"pattern", "x"}, {"format", "y"}})
            .empty());
}

TEST_CASE("schemas: what cannot be used is said") {
  CHECK_THAT(found(R"x({"pattern":"^(?!x)"})x", "a"),
             Contains("cannot use the schema") && Contains("(?!x)"));
  CHECK_THAT(found(R"x({"patternProperties":{"(":{}}})x", json::object()),
             Contains("cannot use the schema"));
  CHECK_THAT(found(R"({"pattern":")" + std::string(100'000, '(') + "\"}", "a"),
             Contains("cannot use the schema"));
  const auto* const loop = GENERATE(
      R"({"$ref":"#"})", R"({"allOf":[{"$ref":"#"}]})",
      R"({"not":{"$ref":"#/definitions/a/"},"definitions":{"a":{"anyOf":[{"$ref":"#/definitions/a"}]}}})",
      R"({"properties":{"d":{"$ref":"#/definitions/a"}},"definitions":{"a":{"if":{"$ref":"#/definitions/a"}}}})");
  CHECK_THAT(found(loop, {{"d", 1}}), Contains("leads back to itself"));
  CHECK_THAT(found(R"({"$ref":"#/enum/0","enum":[{"pattern":"x"}]})", "x"),
             Contains("leads to data"));
  CHECK_THAT(found(R"({"$ref":"#/%65num/0","enum":[{"pattern":"x"}]})", "x"),
             Contains("leaves the document"));
  CHECK_THAT(found(R"({"$ref":")" + std::string(100'000, 'h') + "\"}", "x"),
             Contains("leaves the document"));
  CHECK_THAT(found(R"({"uniqueItems":true})", json(std::vector<int>(100'000, 1))),
             Contains("100000 items") && Contains("5000"));
}

TEST_CASE("schemas: a step into the value is no circle") {
  const std::string tree = R"({"type":"object","properties":{"next":{"$ref":"#"},
    "n":{"$ref":"#/definitions/default"}},"definitions":{"default":{"type":"integer"}}})";
  CHECK(found(tree, {{"next", {{"next", {{"n", 1}}}}}}).empty());
  CHECK_FALSE(found(tree, {{"next", {{"next", {{"n", "1"}}}}}}).empty());
}

} // namespace boyd::schema_check_test
