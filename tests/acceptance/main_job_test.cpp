#include "main_job.hpp"
#include "support/pch.hpp"

namespace boyd::main_job_test {

using namespace boyd::test;

TEST_CASE("line 2: init and three cycles leave rows, STATE.md and commits that agree",
          "[acceptance]") {
  const site s(briefing_settings("sqlite"));
  check_three_cycles(s);
}

} // namespace boyd::main_job_test
