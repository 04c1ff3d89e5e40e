#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "support/pch.hpp"

#include <string>
#include <vector>

/// Cycles from before they had numbers.
namespace boyd::test {

/// Cycles as every schema up to now has them; their ids are in another order than their times.
inline constexpr const char* old_cycles =
    "INSERT INTO cycles(cycle_id, kernel_id, scheduled_at, status, dispatched, succeeded, failed, "
    "failed_agents, agents, duration_ms, error, started_at, finished_at, node_id) VALUES"
    "('z', 'k', 1000, 'success', 0, 0, 0, '[]', '[]', 1, '', 1000, 1001, 'n1'),"
    "('x', 'k2', 1500, 'success', 0, 0, 0, '[]', '[]', 1, '', 1500, 1501, 'n1'),"
    "('a', 'k', 2000, 'success', 0, 0, 0, '[]', '[]', 1, '', 2000, 2001, 'n1');";

/// They are listed in the order of their times, and what begins after them is the latest, also when
/// a clock was set back between.
inline void check_old_cycles(dispatch_store& store) {
  cycle_record later;
  later.cycle_id = "m";
  later.kernel_id = "k";
  later.scheduled_at = later.started_at = from_unix_ms(500);
  later.node_id = "n1";
  const auto replies = store.apply({store::begin_cycle{later}, store::list_cycles{"k", true, 5}});
  REQUIRE(replies);
  std::vector<std::string> ids;
  for (const auto& each : std::get<std::vector<cycle_record>>(replies->at(1)))
    ids.push_back(each.cycle_id);
  CHECK(ids == std::vector<std::string>{"m", "a", "z"});
}

} // namespace boyd::test
