#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/time.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/graph/edge_log.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What the log of facts is told of a recorded cycle (docs/knowledge.md). Pure. A record that is
/// made again after a restart may see another state of a row and another time; by its key
/// (graph::key_of) each fact is the same then: a decision has no fence, what comes of a run has
/// that of the attempt that ended.
namespace boyd::effects {

/// `decided_by`: the run, and the cycle that wanted it. `reason`: of the planner; empty: it has
/// given none.
graph::edge decision_of(const dispatch& d, const std::string& cycle_id, std::string_view planner,
                        std::string_view reason, utc_time at);

/// Of a dispatch that has ended: `used_in` for each item that its prompt showed, then
/// `resulted_in`, then `validated_by` for each skill that it declared.
std::vector<graph::edge> facts_of(const dispatch& d, utc_time at);

/// The items and skills that the facts are about, and the runs that used them, each once.
lessons_about about_of(const std::vector<graph::edge>& facts);

/// In their order, in parts that one request of the recorder takes.
std::vector<std::vector<graph::edge>> in_parts(std::vector<graph::edge> facts);

} // namespace boyd::effects
