#include "cycle_lab.hpp"
#include "hostile_patches.hpp"

namespace boyd::hostile_test {

using namespace boyd::improve;
using namespace boyd::test;
using Catch::Matchers::Contains;

TEST_CASE("case 48 patch-symlink: a whole cycle with a hostile patch leaves the tree identical") {
  cycle_lab lab{{"README.md", "See [it](gone.md).\n"}, {".gitignore", "fifo\nhard2\n"}};
  put_targets(lab.tree);
  lab.commit("what they aim at");
  lab.order.settings.protect = {"secure/**"};
  const auto before = lab.print();
  const auto head = lab.head();
  std::size_t asked = 0;
  for (const auto& [answer, reason] : hostile_patches()) {
    INFO(answer.substr(0, 200));
    lab.answer = [&, text = answer](const std::string&) {
      ++asked;
      return text;
    };
    const auto s = lab.cycle();
    CHECK(s.status == improve_status::failed);
    REQUIRE(s.execution.refusals.size() == most_tries);
    CHECK_THAT(s.execution.refusals.front(), Contains(reason));
    CHECK_FALSE(s.execution.applied);
    CHECK((lab.print() == before));
    CHECK(lab.head() == head);
    CHECK_FALSE(std::filesystem::exists(lab.tree.path("_outputs/agi_kernel/undo")));
    // The next one is asked for the same task: three strikes would pause it.
    auto state = latest_state(lab.order.root, lab.order.settings, *lab.tree.files).value();
    state.strikes.clear();
    lab.tree.put("_outputs/agi_kernel/state.json", state_json(state), 0600);
  }
  CHECK(asked == most_tries * hostile_patches().size());
}

} // namespace boyd::hostile_test
