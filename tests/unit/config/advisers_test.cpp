#include "support/pch.hpp"
#include "unit/config/loading.hpp"

namespace boyd::advisers_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

/// A kernel with these keys, and a provider on loopback without a model of its own.
std::string with(const std::string& kernel, const std::string& provider = "") {
  return "version: 1\nproviders:\n  - {provider_id: local, base_url: 'http://127.0.0.1:1/v1'" +
         provider + "}\nkernels:\n  - kernel_id: default\n" + kernel;
}

const finding& wrong(const std::string& text, const std::string& key) {
  static std::optional<load_result> kept;
  kept.emplace(load_text(text));
  INFO(texts(*kept));
  CHECK_FALSE(kept->value.has_value());
  const auto* found = about(*kept, key);
  REQUIRE(found != nullptr);
  return *found;
}

} // namespace

TEST_CASE("advisers: without a word nobody is asked", "[config]") {
  const auto c = load_text(with(""));
  INFO(texts(c));
  REQUIRE(c.value.has_value());
  const auto& k = c.value->kernels.at(0);
  CHECK(k.plan == planner{});
  CHECK(k.plan.type == planner::type_t::fixed);
  CHECK(k.reduce == reducer{});
}

TEST_CASE("advisers: the schema's defaults are those of the values", "[config]") {
  const auto c = load_text(with("    planner: {type: llm, provider: local, model: m}\n"
                                "    reducer: {type: llm, provider: local, model: m}\n"));
  INFO(texts(c));
  REQUIRE(c.value.has_value());
  const auto& k = c.value->kernels.at(0);
  planner expected;
  expected.type = planner::type_t::llm;
  expected.ask.provider_id = "local";
  expected.ask.model = "m";
  expected.ask.budget.day = {.tokens = 1'000'000, .cost = 5'000'000};
  CHECK(k.plan == expected);
  CHECK(k.reduce.type == reducer::type_t::llm);
  CHECK(k.reduce.ask == expected.ask);
}

TEST_CASE("advisers: every key arrives where it belongs", "[config]") {
  const auto c = load_text(
      with("    planner:\n      type: llm\n      provider: local\n      timeout: 7s\n"
           "      max_output_tokens: 99\n      instructions: Be quick.\n"
           "      budget_day: {tokens: 5, cost: '0.25'}\n      max_dispatches: 1\n"
           "      cooldown: 3m\n      fallback: [{provider: local, model: n, on: [quota]}]\n",
           ", model: m, prices: {'*': {input: 0, output: 0}}"));
  INFO(texts(c));
  REQUIRE(c.value.has_value());
  const auto& p = c.value->kernels.at(0).plan;
  CHECK(p.ask.model.empty());
  CHECK(p.ask.timeout == 7s);
  CHECK(p.ask.max_output_tokens == 99);
  CHECK(p.ask.instructions == "Be quick.");
  CHECK(p.ask.budget.day.tokens == 5);
  CHECK(p.ask.budget.day.cost == 250'000);
  CHECK(p.max_dispatches == 1);
  CHECK(p.cooldown == 3min);
  CHECK(p.ask.fallback == std::vector<model_fallback>{{"local", "n", {"quota"}}});
}

TEST_CASE("advisers: what does not fit is a finding with the nearest name", "[config]") {
  CHECK(wrong(with("    planner: {type: lmm}\n"), "kernels[0].planner.type").nearest == "llm");
  CHECK(wrong(with("    reducer: {type: rule}\n"), "kernels[0].reducer.type").nearest == "rules");
  CHECK(wrong(with("    planner: {type: llm, provider: locl, model: m}\n"),
              "kernels[0].planner.provider")
            .nearest == "local");
  CHECK(wrong(with("    planner: {type: llm, provider: local, model: m, max_dispatch: 2}\n"),
              "kernels[0].planner.max_dispatch")
            .nearest == "max_dispatches");
  CHECK(wrong(with("    reducer: {type: llm, provider: local, model: m, fallback: [{provider: "
                   "locl}]}\n"),
              "kernels[0].reducer.fallback[0].provider")
            .nearest == "local");
  wrong(with("    planner: {type: static, fallback: [{provider: local}]}\n"),
        "kernels[0].planner.fallback");
  wrong(with("    planner: {type: llm}\n"), "kernels[0].planner.provider");
  wrong(with("    planner: {type: llm, provider: local}\n"), "kernels[0].planner.model");
  wrong(with("    planner: {provider: local}\n"), "kernels[0].planner.provider");
  wrong(with("    reducer: {type: rules, timeout: 3s}\n"), "kernels[0].reducer.timeout");
  wrong(with("    planner: {type: llm, provider: local, model: m, timeout: 2h}\n"),
        "kernels[0].planner.timeout");
  wrong(with("    planner: {type: llm, provider: local, model: m, max_dispatches: 65}\n"),
        "kernels[0].planner.max_dispatches");
}

TEST_CASE("advisers: a limit of cost that is asked for needs prices", "[config]") {
  const std::string yaml =
      "version: 1\nproviders:\n  - {provider_id: far, base_url: 'https://models.example/v1', "
      "api_key: k0123456789, model: m}\nkernels:\n  - planner: {type: llm, provider: far, "
      "budget_day: {cost: '1.00'}}\n";
  wrong(yaml, "kernels[0].planner.budget_day.cost");
}

} // namespace boyd::advisers_test
