#pragma once

#include "boyd/plan/llm_reducer.hpp"
#include "boyd/plan/static_planner.hpp"
#include "messages/message.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boyd {

/// Everything a planner decides from; pure values.
struct plan_request : message {
  std::shared_ptr<const config::configuration> configuration;
  std::string kernel_id;
  plan::plan_input input;
  /// Only what could run: no model is asked and nothing is recorded.
  bool dry = false;
  milliseconds time_left{0}; ///< of the cycle; what a model may take of it at most
};

/// The lines of a cycle's outcomes for `## recent_actions`.
struct reduce_request : message {
  std::shared_ptr<const config::configuration> configuration;
  std::string kernel_id;
  std::string cycle_id;
  std::vector<plan::told_outcome> outcomes;
};

/// What a model worded; outcomes that are not here keep the rules' text.
struct reduction {
  std::map<std::string, std::string> lines; ///< by dispatch_id
  std::string problem;                      ///< why the rules worded them; empty: they did not
};

/// The kernel's cycle ends, or the node does: its questions are not waited for any longer. A plan
/// that was asked for is answered with `cancelled`, a reduction with nothing.
struct stop_questions : message {
  std::string kernel_id;
};

} // namespace boyd
