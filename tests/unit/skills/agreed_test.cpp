#include "boyd/skills/agreed.hpp"
#include "support/pch.hpp"

namespace boyd::agreed_test {

using namespace boyd::skills;

TEST_CASE("memory policy: what was shown is done, what is decided otherwise by now is named",
          "[skills]") {
  const std::vector<policy_decision> now{
      {"ctx_1", "a.md", memory_action::archive, "of low importance", 0.7},
      {"ctx_2", "b.md", memory_action::forget, "not useful", 0.9},
      {"ctx_3", "c.md", memory_action::keep, "no rule asks for more", 0.5},
      {"ctx_4", "d.md", memory_action::reinforce, "cited often", 0.9}};
  const auto all = agreed({{"ctx_1", "archive"},
                           {"ctx_1", "archive"},
                           {"ctx_2", "archive"},
                           {"ctx_3", "summarize"},
                           {"ctx_3", "keep"},
                           {"ctx_9", "forget"}},
                          now);
  REQUIRE(all.done.size() == 1);
  CHECK(all.done[0] == now[0]);
  CHECK(all.changed == std::vector<changed_decision>{{"ctx_2", "b.md", "archive", "forget"},
                                                     {"ctx_3", "c.md", "summarize", "keep"},
                                                     {"ctx_9", "ctx_9", "forget", "keep"}});
}

} // namespace boyd::agreed_test
