#include "boyd/context/wanted.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace boyd::wanted_test {

using namespace boyd::context;

namespace {

const auto now = from_unix_ms(1'800'000'000'000);

} // namespace

TEST_CASE("wanted: references of a text keep what they are", "[context]") {
  const auto all = references_in("read @a/b.md:3-4, @word and \n@!git log", true);
  REQUIRE(all.size() == 3);
  CHECK(all[0].what == reference{reference_kind::file, "a/b.md", 3, 4});
  CHECK(all[0].configured);
  CHECK_FALSE(all[0].if_it_exists);
  CHECK(all[1].if_it_exists);
  CHECK(all[2].what.kind == reference_kind::command);
  CHECK_FALSE(references_in("@a/b.md", false).front().configured);
  CHECK(read_wanted(to_json(all)) == all);
}

TEST_CASE("wanted: any text of a dispatch's metadata can be read", "[context]") {
  CHECK(read_wanted("").empty());
  CHECK(read_wanted("{}").empty());
  CHECK(read_wanted(R"([1,{"reference":"@"},{"reference":"@a"},{"reference":"@a","origin":"x"}])")
            .empty());
  CHECK(read_wanted(R"([{"reference":"@a","origin":"buffer","configured":"yes"}])") ==
        std::vector<wanted>{
            {{reference_kind::file, "a", 0, 0}, origin::buffer, false, false, false}});
  REQUIRE(rc::check([](const std::string& text) { read_wanted(text); }));
}

TEST_CASE("buffer: adding, taking out and clearing", "[context]") {
  auto r = change({}, {{"@a.md", "#docs", "a.md"}, {}, false}, now);
  REQUIRE(r);
  CHECK(r->added == std::vector<std::string>{"@a.md", "#docs"});
  CHECK(r->known == std::vector<std::string>{"@a.md"});
  const auto kept = read_buffer(to_json(r->after));
  REQUIRE(kept);
  CHECK(*kept == r->after);
  CHECK(references_of(*kept).front().from == origin::buffer);
  CHECK_FALSE(references_of(*kept).front().configured);
  auto less = change(*kept, {{}, {"a.md"}, false}, now);
  REQUIRE(less);
  CHECK(less->removed == std::vector<std::string>{"@a.md"});
  CHECK(less->after.entries.size() == 1);
  CHECK(change(*kept, {{"@b"}, {}, true}, now)->after.entries.size() == 1);
}

TEST_CASE("buffer: what is refused says what to do, and changes nothing", "[context]") {
  const auto code = [](const buffer_change& c) {
    const auto r = change({}, c, now);
    return r ? errc::bug : r.error().code;
  };
  CHECK(code({{"@"}, {}, false}) == errc::invalid_argument);
  CHECK(code({{"@!ls | wc"}, {}, false}) == errc::invalid_argument);
  CHECK(code({{}, {"@a"}, false}) == errc::not_found);
  buffer_change many;
  for (std::size_t i = 0; i <= buffer::most_entries; ++i)
    many.add.push_back("@" + std::to_string(i));
  CHECK(code(many) == errc::limit_exceeded);
  for (const auto* broken :
       {"x", "[]", "{}", R"({"items":[1]})", R"({"items":[{"reference":""}]})"}) {
    INFO(broken);
    const auto r = read_buffer(broken);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::corrupt);
    CHECK_FALSE(r.error().next.empty());
  }
  REQUIRE(read_buffer(""));
  REQUIRE(rc::check([](const std::string& text) { (void)read_buffer(text); }));
}

} // namespace boyd::wanted_test
