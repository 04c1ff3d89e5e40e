#include "boyd/plan/llm_planner.hpp"
#include "boyd/plan/llm_reducer.hpp"
#include "support/pch.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/scenario.hpp"
#include "tests/sim/lab/world.hpp"

#include <set>

namespace boyd::models_test {

using namespace boyd;
using namespace boyd::sim;

TEST_CASE("models plan and word outcomes under all faults, and their nonsense moves nothing",
          "[sim][llm]") {
  const quiet no_log;
  constexpr int worlds = 12;
  std::set<plan::fallback_reason> plans;
  std::set<plan::fallback_reason> words;
  int seen = 0;
  for (std::uint64_t seed = 1; seen < worlds; ++seed) {
    auto s = scenario_of(seed);
    const auto& k = s.configuration.kernels.front();
    if (k.plan.type != config::planner::type_t::llm ||
        k.reduce.type != config::reducer::type_t::llm)
      continue;
    ++seen;
    world w(seed, std::move(s.configuration), std::move(s.menu), s.options);
    w.boot();
    w.run(std::chrono::hours{24});
    w.settle();
    INFO("seed " << seed << "\n" << joined(w.violations()));
    CHECK(w.violations().empty());
    for (const auto& [key, row] : w.database().all_decisions()) {
      if (row.decision.agent_id == plan::planner_voice)
        plans.insert(plan::read_plan_record(row.decision.detail)->asked.fell_back);
      if (row.decision.agent_id == plan::reducer_voice)
        words.insert(plan::read_reduce_record(row.decision.detail)->asked.fell_back);
    }
  }
  // The worlds have what they are for.
  for (const auto reason : {plan::fallback_reason::none, plan::fallback_reason::bad_answer,
                            plan::fallback_reason::timeout}) {
    INFO(plan::name_of(reason));
    CHECK(plans.contains(reason));
  }
  CHECK(words.contains(plan::fallback_reason::none));
  CHECK(words.size() > 1);
}

} // namespace boyd::models_test
