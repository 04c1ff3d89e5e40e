#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/entropy.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::text_test {

using namespace boyd;

namespace {

class fixed_entropy : public entropy {
 public:
  explicit fixed_entropy(std::uint64_t bits) : bits_{bits} {}
  std::uint64_t next() override { return bits_; }

 private:
  std::uint64_t bits_;
};

} // namespace

TEST_CASE("characters are code points, invalid bytes count as one") {
  CHECK(count_characters("") == 0);
  CHECK(count_characters("abc") == 3);
  CHECK(count_characters("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") == 3);
  CHECK(count_characters("\xFF\xC3") == 2);
  CHECK(count_characters("\xED\xA0\x80") == 3); // a surrogate is no character
  CHECK(count_characters("\xC0\x80") == 2);     // overlong
  CHECK(count_characters("\xF4\x90\x80\x80") == 4);
  CHECK(cut_characters("a\xE2\x82\xAC"
                       "b",
                       2) == "a\xE2\x82\xAC");
  CHECK(cut_characters("abc", 0).empty());
  CHECK(cut_characters("abc", 9) == "abc");
}

TEST_CASE("sanitize_utf8 leaves good text alone and repairs the rest") {
  CHECK(sanitize_utf8("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
  CHECK(sanitize_utf8(std::string("a\0b", 3)) == "a\xEF\xBF\xBD"
                                                 "b");
  CHECK(sanitize_utf8("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  REQUIRE(rc::check("sanitizing is idempotent and keeps the count", [](const std::string& bytes) {
    const auto once = sanitize_utf8(bytes);
    RC_ASSERT(sanitize_utf8(once) == once);
    RC_ASSERT(count_characters(once) == count_characters(bytes));
    RC_ASSERT(once.find('\0') == std::string::npos);
  }));
  REQUIRE(rc::check(
      "a cut is a prefix of the right length", [](const std::string& bytes, std::uint8_t n) {
        const auto cut = cut_characters(bytes, n);
        RC_ASSERT(std::string_view{bytes}.substr(0, cut.size()) == cut);
        RC_ASSERT(count_characters(cut) == std::min<std::size_t>(n, count_characters(bytes)));
      }));
}

TEST_CASE("trim, first_line, split") {
  CHECK(trim(" \t a b \r\n") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(first_line("\n\n  one \r\ntwo") == "one");
  CHECK(first_line(" \n ").empty());
  CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  REQUIRE(rc::check("split and join are inverse", [](const std::string& text) {
    std::string joined;
    for (const auto part : split(text, 'a'))
      joined.append(joined.empty() && part.data() == text.data() ? "" : "a").append(part);
    RC_ASSERT(joined == text);
  }));
}

TEST_CASE("nearest finds slips and nothing far away") {
  const std::vector<std::string_view> keys{"priority", "prompt", "timeout", "tz"};
  CHECK(nearest("pririty", keys) == "priority");
  CHECK(nearest("tiemout", keys) == "timeout");
  CHECK(nearest("prompts", keys) == "prompt");
  CHECK(nearest("tx", keys) == "tz");
  CHECK(nearest("executor", keys).empty());
  CHECK(nearest("", keys).empty());
  CHECK(nearest(std::string(4096, 'x'), keys).empty());
}

TEST_CASE("UUIDv7 has the layout of RFC 9562 and sorts by time") {
  fixed_entropy ones{~std::uint64_t{0}};
  fixed_entropy zeros{0};
  CHECK(make_uuid_v7(from_unix_ms(0x017F22E279B0), ones) == "017f22e2-79b0-7fff-bfff-ffffffffffff");
  CHECK(make_uuid_v7(from_unix_ms(0x017F22E279B0), zeros) ==
        "017f22e2-79b0-7000-8000-000000000000");
  REQUIRE(rc::check("later sorts later", [](std::uint64_t a, std::uint64_t b) {
    const auto t = *rc::gen::inRange<std::int64_t>(0, 253'402'300'799'000);
    fixed_entropy first{a}, second{b};
    const auto earlier = make_uuid_v7(from_unix_ms(t), first);
    RC_ASSERT(is_uuid(earlier));
    RC_ASSERT(time_of_uuid_v7(earlier) == from_unix_ms(t));
    RC_ASSERT(earlier < make_uuid_v7(from_unix_ms(t + 1), second));
  }));
}

TEST_CASE("is_uuid and is_valid_name refuse everything else") {
  CHECK_FALSE(is_uuid(""));
  CHECK_FALSE(time_of_uuid_v7("n1"));
  CHECK_FALSE(time_of_uuid_v7("017f22e2-79b0-4fff-bfff-ffffffffffff"));
  CHECK_FALSE(is_uuid("017F22E2-79B0-7FFF-BFFF-FFFFFFFFFFFF"));
  CHECK_FALSE(is_uuid("017f22e2-79b0-7fff-bfff-fffffffffff"));
  CHECK_FALSE(is_uuid("017f22e2079b0-7fff-bfff-ffffffffffff"));
  CHECK(is_valid_name("daily-report_2.x"));
  CHECK(is_valid_name(std::string(64, 'a')));
  for (const char* name : {"", ".hidden", "-dash", "a/b", "a b", "a\n", "\xC3\xA4"})
    CHECK_FALSE(is_valid_name(name));
  CHECK_FALSE(is_valid_name(std::string(65, 'a')));
}

} // namespace boyd::text_test
