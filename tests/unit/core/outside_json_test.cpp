#include "boyd/core/json_depth.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <string>

using namespace boyd;
using nlohmann::json;

namespace {

json mended(std::string_view text) {
  const auto out = mend_json(text);
  INFO(text);
  REQUIRE(out);
  return json::parse(out->text);
}

json found(std::string_view text) {
  const auto out = find_json(text);
  INFO(text);
  INFO((out ? "" : out.error().what));
  REQUIRE(out);
  return json::parse(out->text);
}

std::string joined(std::initializer_list<std::string_view> pieces) {
  std::string text;
  for (const auto piece : pieces) {
    const auto out = mend_json(piece, {.is_piece = true});
    REQUIRE(out);
    text += json::parse(out->text).get<std::string>();
  }
  join_pieces(text);
  return text;
}

} // namespace

TEST_CASE("outside JSON: what is strict stays as it is", "[outside_json]") {
  const std::string text = R"({"a":[1,-2.5e3,true,null,"x\n\ud83d\ude00"],"b":{}})";
  const auto out = mend_json(text);
  REQUIRE(out);
  CHECK(out->text == text);
  CHECK_FALSE(out->mended);
  CHECK(out->end == text.size());
}

TEST_CASE("field case 02: bytes and halves that are no text become U+FFFD", "[outside_json]") {
  CHECK(mended("{\"a\":\"Hi \\ud83d\"}")["a"] == "Hi \uFFFD");
  CHECK(mended("{\"a\":\"\\ude00 there\"}")["a"] == "\uFFFD there");
  CHECK(mended("{\"a\":\"\\ud83dx\\ud83d\\ud83d\\ude00\"}")["a"] == "\uFFFDx\uFFFD\U0001F600");
  CHECK(mended("{\"a\":\"caf\xE9\"}")["a"] == "caf\uFFFD");
  CHECK(mended("{\"\xE9\":1}")["\uFFFD"] == 1);
  CHECK(mended("{\"a\":\"one\ntwo\tthree\x1B[0m\"}")["a"] == "one\ntwo\tthree\x1B[0m");
  CHECK(mended(R"({"a":"C:\path \x"})")["a"] == "C:\\path \\x");
  CHECK(mended(std::string("{\"a\":\"x\0y\"}", 11))["a"].get<std::string>() ==
        std::string("x\0y", 3));
}

TEST_CASE("field case 02: pieces of a stream are joined", "[outside_json]") {
  CHECK(joined({R"("Hi \ud83d")", R"("\ude00 there")"}) == "Hi \U0001F600 there");
  CHECK(joined({"\"\xF0\x9F\"", "\"\x98\"", "\"\x80!\""}) == "\U0001F600!");
  CHECK(joined({R"("\ud83d")", R"("x")", R"("\ude00")"}) == "\uFFFDx\uFFFD");
  CHECK(joined({R"("\ud83d")", R"("\ud83d")", R"("\ude00")"}) == "\uFFFD\U0001F600");
  CHECK(joined({"\"a\xE9\"", R"("\ud83d")"}) == "a\uFFFD\uFFFD");
  // A sender's own private characters are not taken for stand-ins.
  CHECK(joined({"\"\xF3\xBD\xA0\xBD\"", "\"\xF3\xBD\xB8\x80\""}) == "\uFFFD\uFFFD");
}

TEST_CASE("field case 17: NaN, infinities and numbers that are too large are null",
          "[outside_json]") {
  const auto v = mended(R"({"a":NaN,"b":[-Infinity,Infinity,1e999,-1e999],"c":"NaN","d":nan})");
  CHECK(v == json::parse(R"({"a":null,"b":[null,null,null,null],"c":"NaN","d":null})"));
  CHECK_FALSE(mend_json("{\"a\":NaNa}"));
}

TEST_CASE("field case 17: marks and escape sequences around and between tokens", "[outside_json]") {
  CHECK(mended("\xEF\xBB\xBF{\"a\":1}\r\n")["a"] == 1);
  CHECK(mended("\x1B[32m{\"a\":\x1B[1m1\x1B[0m}\x1B[0m")["a"] == 1);
  CHECK(mended("\x1B]0;title\a{\"a\":1}")["a"] == 1);
  CHECK(mended(std::string("\0{\"a\":1}\0", 9))["a"] == 1);
  CHECK(without_escapes("\x1B[1;31mred\x1B[0m \x1B]8;;http://x\x1B\\link") == "red link");
}

TEST_CASE("outside JSON: meaning is judged strictly", "[outside_json]") {
  for (const auto* text : {"",           "   ",         "{",       "{\"a\":",    "{\"a\":\"x",
                           "{\"a\":1",   "{a:1}",       "{'a':1}", "{\"a\":1,}", "[1,]",
                           "{\"a\":1}}", "{\"a\":1} x", "1 2",     "{\"a\":01}", "{\"a\":tru}",
                           "[1}",        "{\"a\" 1}",   "]",       "+1",         ".5"})
    CHECK_FALSE(mend_json(text));
  const std::string deep(limits::json_depth + 1, '[');
  const auto out = mend_json(deep + std::string(deep.size(), ']'));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::limit_exceeded);
}

TEST_CASE("field case 17: long strings are cut, the rest stays", "[outside_json]") {
  const auto text = R"({"a":")" + std::string(2000, 'x') + R"(","b":2})";
  const auto out = mend_json(text, {.string_bytes = 100});
  REQUIRE(out);
  CHECK(out->cut == 1900);
  const auto v = json::parse(out->text);
  CHECK(v["b"] == 2);
  CHECK(v["a"] == std::string(100, 'x') + "… [1900 bytes cut]");
  // Neither a character nor an escape is split.
  for (std::size_t limit = 1; limit < 40; ++limit) {
    const auto cut =
        mend_json("[\"\U0001F600\\ud83d\\ude00\\n\\\\\\u00e9\xE9z\"]", {.string_bytes = limit});
    REQUIRE(cut);
    CHECK(json::accept(cut->text));
  }
}

TEST_CASE("field case 07: the one JSON value behind reasoning, in a fence or in prose",
          "[outside_json]") {
  const json green{{"verdict", "green"}};
  CHECK(found("<think>{\"verdict\":\"red\"}</think>\n{\"verdict\":\"green\"}") == green);
  CHECK(found("so I think it is {\"verdict\":\"red\"}</think>{\"verdict\":\"green\"}") == green);
  CHECK(found("```json\n{\"verdict\":\"green\"}\n```") == green);
  CHECK(found("Here:\n\n~~~~ JSON5\n{\"verdict\":\n\"green\"}\n~~~~\nbye") == green);
  CHECK(found("<thinking>\n…\n</thinking>\n```\n{\"verdict\":\"green\"}\n```\nI hope {it} helps") ==
        green);
  CHECK(found("The verdict [1] is {\"verdict\":\"green\"}. Really {\"verdict\": \"green\"}!") ==
        green);
  CHECK(found("```json\n{\"verdict\":\"green\"}") == green);
  CHECK(found("{\"verdict\":\"<think>\"}")["verdict"] == "<think>");
  CHECK(found("It is [1, 2]") == json::array({1, 2}));
  CHECK(found("\"text\"") == "text");
  CHECK(found("{x} and {\"verdict\":\"green\"}") == green);
  CHECK(found("Here: [{\"a\":1},{\"a\":2}]").size() == 2);
  CHECK(found("<Think>{\"a\":1}</Think>{\"verdict\":\"green\"}") == green);
  CHECK(found("<think>a</think> It is {\"t\":\"a </think> tag\"}")["t"] == "a </think> tag");
}

TEST_CASE("field case 07: several values or none are no answer", "[outside_json]") {
  for (const auto* text :
       {"{\"a\":1} or {\"a\":2}", "```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```", "nothing",
        "{\"verdict\":\"red\",\"why\":{\"verdict\":\"green\"}, \"x",
        "{\"status\":\"failed\",\"detail\":{\"status\":\"done\"}", "[{\"a\":1},",
        "```json\n{\"verdict\":\"red\",\"why\":{\"verdict\":\"green\"}\n```", "<think>{\"a\":1}",
        "<think>x</think> <think>{\"a\":1}", "{\"a\":1", "```json\n{\"a\":\n```"})
    CHECK_FALSE(find_json(text));
}

TEST_CASE("outside JSON: whatever comes out is valid and stays the same", "[outside_json]") {
  rc::check("any bytes", [](const std::string& bytes) {
    for (const bool is_piece : {false, true})
      if (const auto out = find_json(bytes, {.string_bytes = 20, .is_piece = is_piece})) {
        RC_ASSERT(json::accept(out->text));
        RC_ASSERT(mend_json(out->text)->text == out->text);
      }
  });
  rc::check("any string in JSON", [](const std::string& bytes) {
    std::string text = sanitize_utf8(bytes);
    const auto out = mend_json(json(text).dump());
    RC_ASSERT(out && json::parse(out->text).get<std::string>() == text);
  });
  rc::check("bytes cut anywhere are joined again", [](const std::u32string& raw) {
    std::string text;
    for (const char32_t c : raw)
      text += json::parse("\"\\u" + std::string("0123456789abcdef").substr(c % 8, 1) + "2ac\"")
                  .get<std::string>();
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    std::string both;
    for (const auto& piece : {text.substr(0, at), text.substr(at)}) {
      const auto out = mend_json("\"" + piece + "\"", {.is_piece = true});
      RC_ASSERT(out.has_value());
      both += json::parse(out->text).get<std::string>();
    }
    join_pieces(both);
    RC_ASSERT(both == text);
  });
}
