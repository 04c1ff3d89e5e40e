#pragma once

#include "boyd/plan/static_planner.hpp"
#include "messages/message.hpp"

#include <memory>

namespace boyd {

/// Everything a planner decides from; pure values.
struct plan_request : message {
  std::shared_ptr<const config::configuration> configuration;
  std::string kernel_id;
  plan::plan_input input;
};

} // namespace boyd
