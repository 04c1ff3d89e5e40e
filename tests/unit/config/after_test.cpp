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

TEST_CASE("schedule: a map with at is a schedule of one time", "[config]") {
  const auto r = load_text("version: 1\nkernels:\n  - schedule: {at: 2026-12-01T09:00}\n"
                           "    tz: Europe/Berlin\n"
                           "    quiet_hours: [{schedule: {at: \"2026-12-24 18:00\"}, length: 2d}]\n"
                           "    agents:\n      - agent_id: a\n"
                           "        schedule:\n          at: ${WHEN}\n"
                           "        executor: {type: command, argv: [x]}\n",
                           {{"WHEN", "2026-12-02T10:00:30Z"}});
  INFO(texts(r));
  REQUIRE(r.value);
  const auto& kernel = r.value->kernels.at(0);
  CHECK(kernel.when.expression == "at 2026-12-01T09:00");
  CHECK(kernel.quiet.at(0).from.expression == "at 2026-12-24 18:00");
  REQUIRE(kernel.agents.at(0).when);
  CHECK(kernel.agents.at(0).when->expression == "at 2026-12-02T10:00:30Z");
}

TEST_CASE("schedule: a wrong time is told with its place", "[config]") {
  const auto of = [](const std::string& value) {
    return load_text("version: 1\nkernels:\n  - schedule: " + value +
                     "\n    agents: [{agent_id: a, executor: {type: command, argv: [x]}}]\n");
  };
  const auto no_time = of("{at: tomorrow}");
  REQUIRE(about(no_time, "kernels[0].schedule") != nullptr);
  CHECK(about(no_time, "kernels[0].schedule")
            ->text()
            .find("boyd.yaml:3:20: kernels[0].schedule: at: \"tomorrow\" is not a date and time") !=
        std::string::npos);
  const auto slip = of("{att: 2026-12-01T09:00}");
  REQUIRE(about(slip, "kernels[0].schedule.att") != nullptr);
  CHECK(about(slip, "kernels[0].schedule.att")->nearest == "at");
  for (const auto* value : {"{at: [2026-12-01T09:00]}", "{}", "{at: 2026-12-01T09:00, tz: UTC}",
                            "[2026-12-01T09:00]", "{at: ~}"})
    CHECK_FALSE(of(value).value);
}

} // namespace boyd::config_after_test
