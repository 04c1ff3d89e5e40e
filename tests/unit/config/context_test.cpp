#include "loading.hpp"
#include "support/pch.hpp"

namespace boyd::config_context_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

context_settings reads_of(const std::string& lines) {
  auto result = load_text(with_agent("        " + lines + "\n"));
  INFO(texts(result));
  REQUIRE(result.value.has_value());
  return result.value->kernels.at(0).agents.at(0).reads;
}

/// The finding about the agent's `context`, whose key ends so.
finding bad(const std::string& lines, const std::string& key) {
  const auto result = load_text(with_agent("        " + lines + "\n"));
  INFO(texts(result));
  CHECK_FALSE(result.value.has_value());
  const auto* found = about(result, "kernels[0].agents[0].context" + key);
  REQUIRE(found != nullptr);
  CHECK(found->line > 0);
  return *found;
}

} // namespace

TEST_CASE("config: a list of references is the short form of context", "[config]") {
  const auto r = reads_of(
      R"(context: ["@README.md", "#docs", notes.txt, {item: "@a.md:1-3", required: true}])");
  REQUIRE(r.items.size() == 4);
  CHECK(context::to_text(r.items[0].what) == "@README.md");
  CHECK(r.items[0].configured);
  CHECK_FALSE(r.items[0].required);
  CHECK(context::to_text(r.items[1].what) == "#docs");
  CHECK(context::to_text(r.items[2].what) == "@notes.txt");
  CHECK(r.items[3].required);
  CHECK(r.budget_tokens == 8000);
  CHECK(r.strategy == context::order::ranked);
  CHECK(r == reads_of(R"(context: {items: ["@README.md", "#docs", notes.txt, )"
                      R"({item: "@a.md:1-3", required: true}]})"));
}

TEST_CASE("config: context has options", "[config]") {
  const auto r = reads_of(R"(context: {items: ["@a", "@!git log -5"], strategy: recent, )"
                          R"(budget_tokens: 500, required: true, workspace: repo})");
  CHECK(r.strategy == context::order::recent);
  CHECK(r.budget_tokens == 500);
  CHECK(r.workspace == "/etc/boyd/repo");
  for (const auto& i : r.items)
    CHECK(i.required);
  CHECK(reads_of("enabled: true") == context_settings{});
}

TEST_CASE("config: what is no reference says where and what to write", "[config]") {
  CHECK(bad(R"(context: ["@a", "@a:9-3"])", "[1]").problem.find("lines") != std::string::npos);
  bad(R"(context: ["@"])", "[0]");
  CHECK(bad(R"(context: ["@!ls | wc"])", "[0]").expected.find("sh -c") != std::string::npos);
  bad(R"(context: {items: [{item: "@a:0"}]})", ".items[0].item");
  bad(R"(context: {budget_tokens: 5})", ".budget_tokens");
  bad(R"(context: {strategy: best})", ".strategy");
  CHECK(bad(R"(context: {budget: 500})", ".budget").nearest.empty());
  bad("context: [7]", "[0]");
  bad("context: 7", "");
}

} // namespace boyd::config_context_test
