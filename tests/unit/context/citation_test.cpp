#include "boyd/context/citation.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::citation_test {

using namespace boyd::context;

namespace {

const std::vector<citable>& items() {
  static const std::vector<citable> all{
      {"C1", "ctx_1", "src/a.cpp:10-30",
       "the lease of a row ends after thirty seconds unless its "
       "owner renews it before that time has come"},
      {"C2", "ctx_2", "docs/b.md",
       "a permit is taken before the claim so that no claim waits for a "
       "place while others could run"},
      {"", "ctx_3", "left/out.md", ""}};
  return all;
}

std::vector<std::size_t> cited(std::string_view answer) {
  std::vector<std::size_t> all;
  for (const auto& c : find_citations(answer, items()))
    if (c.item)
      all.push_back(*c.item);
  return all;
}

using indices = std::vector<std::size_t>;

} // namespace

TEST_CASE("citations: the three forms", "[context]") {
  CHECK(cited("as [C2] says, and [C1].") == indices{1, 0});
  CHECK(cited("see [C1, C2]") == indices{0, 1});
  CHECK(cited("text\n[Reference] file: b.md (docs/b.md)\n") == indices{1});
  CHECK(cited("[Reference] file: ./src/a.cpp") == indices{0});
  CHECK(cited(R"(done {"used_context": ["C1", "ctx_2", "left/out.md"]})") == indices{0, 1, 2});
  CHECK(cited("[C1] and again [C1]") == indices{0});
  CHECK(cited("an array[C], [Cat] and [C1x]").empty());
}

TEST_CASE("citations: what names nothing is invented", "[context]") {
  const auto found =
      find_citations("[C9] and [Reference] not a line\n[Reference] file: x (y/z)", items());
  REQUIRE(found.size() == 2);
  CHECK_FALSE(found[0].item);
  CHECK(found[0].text == "[Reference] file: x (y/z)");
  CHECK(found[1].text == "[C9]");
}

TEST_CASE("citations: an item has more than one name", "[context]") {
  const std::vector<citable> all{
      {"C1", "ctx_1", "README.md", "", {"/srv/repo/README.md"}},
      {"C2", "ctx_2", "src/a.cpp:10-30", "", {"/srv/repo/src/a.cpp:10-30"}},
      {"", "ctx_3", R"(read_file {"path":"other.md"})", "", {"other.md", "/srv/repo/other.md"}},
      {"",
       "ctx_4",
       R"~(fetch {"url":"https://a.example/b?c=(d)"})~",
       "",
       {"https://a.example/b?c=(d)"}},
      {"", "ctx_5", R"(run_command {"argv":["make","test"]})", "", {"make test"}}};
  const auto one = [&](std::string_view answer) -> std::optional<std::size_t> {
    const auto found = find_citations(answer, all);
    REQUIRE(found.size() == 1);
    return found[0].item;
  };
  CHECK(one("[Reference] file: README.md (/srv/repo/README.md)") == 0U);
  CHECK(one("[Reference] file: README (/srv/repo/./README.md)") == 0U);
  CHECK(one("[Reference] file: a (/srv/repo/src/a.cpp)") == 1U);
  CHECK(one("[Reference] file: a (src//a.cpp:12)") == 1U);
  CHECK(one("[Reference] file: other (other.md)") == 2U);
  CHECK(one("[Reference] file: ./docs/../other.md:1-4") == 2U);
  CHECK(one("[Reference] file: other (/srv/repo/other.md)") == 2U);
  CHECK(one(R"({"used_context": ["other.md"]})") == 2U);
  CHECK(one("[Reference] file: https://a.example/b?c=(d)") == 3U);
  CHECK(one("[Reference] file: the tests (make test)") == 4U);
  // Of another directory, or nobody's.
  CHECK_FALSE(one("[Reference] file: README.md (/etc/README.md)"));
  CHECK_FALSE(one("[Reference] file: README.md (/srv/repo/sub/README.md)"));
  CHECK_FALSE(one("[Reference] file: ()"));
  CHECK_FALSE(one("[Reference] file: gone (gone.md)"));
}

TEST_CASE("citations: what a tool said is used like an item, and the correction names it",
          "[context]") {
  const std::vector<citable> all{{"",
                                  "ctx_1",
                                  R"(read_file {"path":"owls.md"})",
                                  "owls sleep by day and hunt by night over the wet meadows",
                                  {"owls.md"}}};
  const std::string silent = "They say owls sleep by day and hunt by night.";
  const auto used = find_used(silent, "a prompt", all, {"owls.md"});
  CHECK(used == indices{0});
  CHECK_THAT(correction_of(judge_citations(find_citations(silent, all), used), all),
             Catch::Matchers::Contains("did not cite it as [Reference] file: owls.md\n"));
  const auto honest = silent + "\n[Reference] file: owls (owls.md)";
  CHECK_FALSE(judge_citations(find_citations(honest, all), used).is_weak());
  // To read a file by a tool is not to use it.
  CHECK(find_used("nothing of interest", "a prompt", all, {"owls.md"}).empty());
}

TEST_CASE("citations: the first item of a file stands for what tools read of it", "[context]") {
  const std::string whole = "owls sleep by day and hunt by night over the wet meadows";
  const std::string answer = "They say owls sleep by day and hunt by night.";
  const std::vector<citable> shown{
      {"C1", "ctx_1", "owls.md", "Owls, in short.", {"/srv/owls.md"}},
      {"", "ctx_2", R"(read_file {"path":"owls.md"})", whole, {"owls.md", "/srv/owls.md"}}};
  CHECK(find_used(answer, "a prompt", shown, {}) == indices{0});
  const auto by_call = find_citations(R"([Reference] file: read_file {"path":"owls.md"})", shown);
  REQUIRE(by_call.size() == 1);
  CHECK(by_call[0].item == 0U);
  const std::vector<citable> read_twice{
      {"", "ctx_1", R"(read_file {"path":"owls.md","limit":1})", "Owls.", {"owls.md"}},
      {"", "ctx_2", R"(read_file {"path":"owls.md"})", whole, {"owls.md"}}};
  const auto used = find_used(answer, "a prompt", read_twice, {});
  const auto honest = answer + "\n[Reference] file: owls.md";
  CHECK_FALSE(judge_citations(find_citations(honest, read_twice), used).is_weak());
}

TEST_CASE("citations: a context that is printed again cites and uses nothing", "[context]") {
  const std::string block = "\n\nCite what you use by its key, e.g. [C1].\n\n[C1] src/a.cpp\n" +
                            items()[0].content + "\n\n[C2] docs/b.md\n" + items()[1].content + "\n";
  const auto said = [&](const std::string& answer) { return without_echo(answer, block); };
  const std::string echo = said("Count the hosts." + block);
  CHECK(cited(echo).empty());
  CHECK(find_used(echo, "a prompt", items(), {}).empty());
  // Printed twice, and without the blank line at its end, as outputs are kept.
  CHECK(cited(said(block + "and\n" + block.substr(0, block.size() - 1))).empty());
  CHECK(cited(said(block + "2 rows, as [C2] says")) == indices{1});
  // A part of it is a quotation.
  CHECK(find_used(said("It says: " + items()[0].content), "a prompt", items(), {}) == indices{0});
  CHECK(cited(said("[C1] src/a.cpp")) == indices{0});
  CHECK(without_echo("as [C1] says", " \n") == "as [C1] says");
  CHECK(without_echo("a, b and a", "a") == "\n, b \nnd \n");
}

TEST_CASE("citations: use is seen apart from the claim", "[context]") {
  const std::string copied =
      "I found that the lease of a row ends after thirty seconds unless its owner renews it.";
  CHECK(find_used(copied, "a prompt", items(), {}) == indices{0});
  CHECK(find_used(copied, items()[0].content, items(), {}).empty()); // it stands elsewhere, too
  CHECK(find_used("something of my own", "a prompt", items(), {"./docs/b.md"}) == indices{1});
  CHECK(find_used("the lease of a row ends", "a prompt", items(), {}).empty());
}

TEST_CASE("citations: accuracy and the correction", "[context]") {
  auto r = judge_citations(find_citations("[C1] [C7]", items()), {1});
  CHECK(r.valid == indices{0});
  CHECK(r.invented == std::vector<std::string>{"[C7]"});
  CHECK(r.uncited == indices{1});
  REQUIRE(r.accuracy);
  CHECK(std::abs(*r.accuracy - 1.0 / 3) < 1e-9);
  CHECK(r.is_weak());
  const auto told = correction_of(r, items());
  CHECK(told.find("[C7] is not an item") != std::string::npos);
  CHECK(told.find("docs/b.md and did not cite it as [C2]") != std::string::npos);
  r = judge_citations({}, {});
  CHECK_FALSE(r.accuracy);
  CHECK_FALSE(r.is_weak());
  CHECK(correction_of(r, items()).empty());
}

TEST_CASE("citations: any answer can be read", "[context]") {
  REQUIRE(rc::check([](const std::string& answer) {
    const auto found = find_citations("[Reference] file: " + answer + "\n" + answer, items());
    const auto r = judge_citations(found, find_used(answer, "", items(), {}));
    RC_ASSERT(!r.accuracy || (*r.accuracy >= 0 && *r.accuracy <= 1));
  }));
}

} // namespace boyd::citation_test
