#include "boyd/mcp/catalogue.hpp"
#include "boyd/mcp/content.hpp"
#include "boyd/mcp/headers.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace boyd::words_test {

using namespace boyd;
using namespace boyd::mcp;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

server_tool named(std::string name) {
  return {std::move(name), "does it", R"({"type":"object"})", {}};
}

std::vector<std::string> names_of(const std::vector<server_tool>& tools, bool resources = false) {
  std::vector<std::string> names;
  for (const auto& t : offer("files", tools, resources))
    names.push_back(t.definition.name);
  return names;
}

} // namespace

TEST_CASE("catalogue: names are those that every provider takes", "[mcp]") {
  CHECK(names_of({named("read_file"), named("a-b")}) ==
        std::vector<std::string>{"mcp__files__read_file", "mcp__files__a-b"});
  CHECK(names_of({named("get.user name")}) ==
        std::vector<std::string>{"mcp__files__get_user_name"});
  // Too long, or of two tools: a part of the hash, the same every time.
  const std::string longest(64 - std::string("mcp__files__").size(), 'x');
  CHECK(names_of({named(longest)}).front() == "mcp__files__" + longest);
  const auto cut = names_of({named(longest + "y"), named(longest + "z")});
  CHECK(cut[0].size() == 64);
  CHECK(cut[0] != cut[1]);
  CHECK(cut[0] == names_of({named(longest + "y")}).front());
  const auto same = names_of({named("a.b"), named("a b"), named("c")});
  CHECK(std::set<std::string>(same.begin(), same.end()).size() == 3);
  CHECK(same[2] == "mcp__files__c");
  for (const auto& n : same)
    CHECK(std::ranges::all_of(n, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    }));
}

TEST_CASE("catalogue: resources are two tools, unless the server has its own", "[mcp]") {
  CHECK(names_of({named("a")}, true) == std::vector<std::string>{"mcp__files__a",
                                                                 "mcp__files__list_resources",
                                                                 "mcp__files__read_resource"});
  CHECK(names_of({named("read_resource")}, true) ==
        std::vector<std::string>{"mcp__files__read_resource"});
  for (const auto& t : offer("files", {}, true))
    CHECK(json::parse(t.definition.parameters_json)["type"] == "object");
}

TEST_CASE("catalogue: which server a name or a pattern means", "[mcp]") {
  CHECK(server_of("mcp__files__read") == "files");
  CHECK(server_of("mcp__a_b__read__x") == "a_b");
  for (const auto* none : {"", "read_file", "mcp__", "mcp__files", "mcp__files__"})
    CHECK(server_of(none).empty());
  for (const auto* pattern : {"mcp__files__*", "mcp__files__read", "mcp__*__*", "mcp__*", "mcp__f*",
                              "mcp__files*", "mcp__files_*", "mcp__files__r*"})
    CHECK(may_name(pattern, "files"));
  for (const auto* pattern :
       {"mcp__file__*", "mcp__filesystem__*", "read_file", "mcp__files", "mcp__files_x__*", "x*"})
    CHECK_FALSE(may_name(pattern, "files"));
}

TEST_CASE("content: texts are shown, bytes are named", "[mcp]") {
  const json parts = {
      {{"type", "text"}, {"text", "one"}},
      {{"type", "image"}, {"data", "AAECAwQ="}, {"mimeType", "image/png"}},
      {{"type", "audio"}, {"data", "AAECAw=="}, {"mimeType", "audio/wav"}},
      {{"type", "resource_link"}, {"uri", "file:///a"}, {"name", "a"}, {"description", "about a"}},
      {{"type", "resource"}, {"resource", {{"uri", "file:///b"}, {"text", "inside"}}}},
      {{"type", "resource"}, {"resource", {{"uri", "file:///c"}, {"blob", "AAEC"}}}},
      {{"type", "hologram"}},
      7};
  const auto words = words_of_call(json{{"content", parts}}.dump());
  CHECK_FALSE(words.is_error);
  CHECK(words.text == "one\n[image image/png, 5 bytes, not shown]\n[audio audio/wav, 4 bytes, not "
                      "shown]\n[resource file:///a  a  about a]\n[file:///b]\ninside\n[file:///c: "
                      "data, 3 bytes, not shown]\n[a part of unknown type hologram]\n[a part of "
                      "unknown type ]");
  const auto failed = words_of_call(R"({"content":[{"type":"text","text":"no"}],"isError":true})");
  CHECK(failed.is_error);
  CHECK(failed.text == "no");
  // Structured content counts where there is no text.
  CHECK(words_of_call(R"({"content":[],"structuredContent":{"b":1,"a":[2]}})").text ==
        R"({"b":1,"a":[2]})");
  CHECK(words_of_call(R"({"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}})")
            .text == "t");
  for (const auto* odd : {"{}", R"({"content":7})", R"({"content":null,"isError":"yes"})"})
    CHECK(words_of_call(odd).text == "(no content)");
}

TEST_CASE("content: resources", "[mcp]") {
  CHECK(words_of_list(R"({"resources":[{"uri":"a:1","name":"x","mimeType":"text/plain"}]})").text ==
        "a:1  x  (text/plain)");
  CHECK_THAT(words_of_list(R"({"resources":[],"nextCursor":"abc"})").text,
             Contains("(no resources)") && Contains("abc"));
  CHECK(words_of_resource(R"({"contents":[{"uri":"a:1","text":"hello"}]})").text == "[a:1]\nhello");
  CHECK(words_of_resource("{}").text == "(no content)");
}

TEST_CASE("headers: values that cannot be sent as they are", "[mcp]") {
  // The examples of the specification.
  CHECK(header_value("us-west1") == "us-west1");
  CHECK(header_value("Hello, 世界") == "=?base64?SGVsbG8sIOS4lueVjA==?=");
  CHECK(header_value(" padded ") == "=?base64?IHBhZGRlZCA=?=");
  CHECK(header_value("line1\nline2") == "=?base64?bGluZTEKbGluZTI=?=");
  CHECK(header_value("=?base64?literal?=") == "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
  CHECK(header_value("") == "");
  CHECK(header_value("a") == "a");
  CHECK(header_value("\x01") == "=?base64?AQ==?=");
}

TEST_CASE("headers: marks in schemas, and what they are filled with", "[mcp]") {
  const auto marks = read_param_headers(
      R"({"type":"object","properties":{
          "region":{"type":"string","x-mcp-header":"Region"},
          "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
          "on":{"type":"boolean","x-mcp-header":"On"},
          "properties":{"type":"string","default":{"x-mcp-header":7}}}})");
  REQUIRE(marks);
  REQUIRE(marks->size() == 3);
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(param_headers_of(*marks, R"({"region":"é","deep":{"n":42},"on":true,"more":1})") ==
        pairs{{"Mcp-Param-Region", "=?base64?w6k=?="},
              {"Mcp-Param-N", "42"},
              {"Mcp-Param-On", "true"}});
  CHECK(param_headers_of(*marks, R"({"region":null,"deep":7})").empty());
  CHECK(param_headers_of(*marks, "").empty());
  for (const auto* wrong :
       {R"({"properties":{"a":{"type":"string","x-mcp-header":""}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"a b"}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"a\r\n"}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":7}}})",
        R"({"properties":{"a":{"type":"number","x-mcp-header":"A"}}})",
        R"({"properties":{"a":{"type":"object","x-mcp-header":"A"}}})",
        R"({"x-mcp-header":"A","type":"string"})",
        R"({"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}})",
        R"({"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"A"},
                          "b":{"type":"string","x-mcp-header":"a"}}})"})
    CHECK_FALSE(read_param_headers(wrong));
}

} // namespace boyd::words_test
