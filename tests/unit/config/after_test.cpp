#include "loading.hpp"
#include "support/pch.hpp"

#include <string>

namespace boyd::config_after_test {

using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

/// Agents a, b and c with these values of `after`; empty: none.
load_result three(const std::string& a, const std::string& b, const std::string& c) {
  std::string text = "version: 1\nkernels:\n  - agents:\n";
  for (const auto& [id, after] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)})
    text += std::string("      - {agent_id: ") + id + ", executor: {type: command, argv: [x]}" +
            (after.empty() ? "" : ", after: " + after) + "}\n";
  return load_text(text);
}

} // namespace

TEST_CASE("after: a list and a map say the same", "[config]") {
  const auto r = three("", "[a]", "{agents: [a, b], when: any}");
  INFO(texts(r));
  REQUIRE(r.value);
  const auto& agents = r.value->kernels.at(0).agents;
  CHECK(agents.at(0).after == predecessors{});
  CHECK(agents.at(1).after == predecessors{{"a"}, true});
  CHECK(agents.at(2).after == predecessors{{"a", "b"}, false});
}

TEST_CASE("after: circles and agents that are not there are errors", "[config]") {
  for (const auto& r : {three("[a]", "", ""), three("[b]", "[a]", ""), three("[b]", "[c]", "[a]"),
                        three("{agents: [c], when: any}", "[a]", "[b]")}) {
    INFO(texts(r));
    CHECK_FALSE(r.value);
    CHECK(texts(r).find("would wait for itself") != std::string::npos);
  }
  const auto unknown = three("[d]", "", "");
  CHECK_FALSE(unknown.value);
  REQUIRE(about(unknown, "kernels[0].agents[0].after.agents[0]") != nullptr);
  CHECK_FALSE(three("[]", "", "").value);
  CHECK_FALSE(three("b", "", "").value);
  CHECK_FALSE(three("{agents: [b], when: never}", "", "").value);
}

} // namespace boyd::config_after_test
