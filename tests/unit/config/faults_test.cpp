#include "boyd/faults/points.hpp"
#include "loading.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::faults_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// The findings about a file whose `faults` are these, from line 8 on.
load_result with_faults(const std::string& lines) {
  return load_text(with_agent("    max_concurrent: 1\nfaults:\n" + lines));
}

} // namespace

TEST_CASE("faults: an unknown point or action is a finding with its place and the nearest name",
          "[config]") {
  const auto r = with_faults("  - {point: store.aply, action: error}\n"
                             "  - {point: nowhere.at_all, action: crash}\n"
                             "  - {point: store.open, action: crush}\n");
  INFO(texts(r));
  CHECK_FALSE(r.value);
  REQUIRE(r.findings.size() == 3);
  const auto* slip = about(r, "faults[0].point");
  REQUIRE(slip != nullptr);
  CHECK(slip->line == 8);
  CHECK(slip->column == 13);
  CHECK(slip->nearest == "store.apply");
  const auto* strange = about(r, "faults[1].point");
  REQUIRE(strange != nullptr);
  CHECK(strange->line == 9);
  CHECK(strange->nearest.empty());
  CHECK_THAT(strange->text(), Contains("expected one of approvals.answer, approvals.ask,"));
  const auto* action = about(r, "faults[2].action");
  REQUIRE(action != nullptr);
  CHECK(action->line == 10);
  CHECK(action->nearest == "crash");
}

TEST_CASE("faults: a delay needs a time, and a point with a thread of its own", "[config]") {
  const auto r = with_faults("  - {point: store.apply, action: delay}\n"
                             "  - {point: kernel.step, action: delay, delay: 1s}\n"
                             "  - {point: store.apply, action: error, delay: 1s}\n"
                             "  - {point: store.apply, action: delay, delay: 1s}\n");
  INFO(texts(r));
  REQUIRE(r.findings.size() == 3);
  CHECK(about(r, "faults[0].delay") != nullptr);
  CHECK(about(r, "faults[1].action") != nullptr);
  CHECK(about(r, "faults[2].delay") != nullptr);
}

TEST_CASE("faults: a point is told to do only what it can", "[config]") {
  const auto r =
      with_faults("  - {point: state_writer.rename, action: drop}\n"
                  "  - {point: store.settle, action: drop, after: 3, every: 2, seed: 7}\n"
                  "  - {point: state_writer.bytes, action: corrupt}\n");
  INFO(texts(r));
  REQUIRE(r.findings.size() == 1);
  const auto* refused = about(r, "faults[0].action");
  REQUIRE(refused != nullptr);
  CHECK_THAT(refused->text(), Contains("expected crash, error or delay"));
  const auto good =
      with_faults("  - {point: store.settle, action: drop, after: 3, every: 2, seed: 7}\n");
  REQUIRE(good.value);
  REQUIRE(good.value->faults.size() == 1);
  const auto& f = good.value->faults.front();
  CHECK(f.action == "drop");
  CHECK(f.after == 3);
  CHECK(f.every == 2);
  CHECK(f.seed == 7u);
  CHECK_FALSE(good.value->node_settings.chaos);
}

TEST_CASE("faults: the schema knows the points that the program has", "[config]") {
  const auto schema = json::parse(schema_json());
  const auto& names = schema.at("definitions").at("fault").at("properties").at("point").at("enum");
  CHECK(names.get<std::vector<std::string>>() ==
        std::vector<std::string>(faults::points().begin(), faults::points().end()));
  for (const auto point : faults::points()) {
    INFO(point);
    const auto can = faults::find(point)->can;
    const std::string action = faults::contains(can, faults::action::crash)  ? "crash"
                               : faults::contains(can, faults::action::drop) ? "drop"
                                                                             : "error";
    CHECK(with_faults("  - {point: " + std::string(point) + ", action: " + action + "}\n").value);
  }
}

} // namespace boyd::faults_test
