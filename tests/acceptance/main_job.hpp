#pragma once

#include "harness.hpp"

namespace boyd::test {

/// Two agents that do well and one that fails on purpose.
test_settings briefing_settings(const std::string& store);

/// Line 2 of issue and docs/planning.md, docs/state-and-history.md, on any store: three cycles,
/// checked from all sides.
void check_three_cycles(const site& s);

} // namespace boyd::test
