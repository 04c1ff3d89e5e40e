#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <map>
#include <string>
#include <vector>

/// What budgets of the day say before anything is dispatched.
namespace boyd::queue {

/// True when a plan for this kernel has to look at totals: one of its agents calls models.
bool has_budgets(const config::kernel& kernel);

/// What has been used up and reserved today, by scope.
store::sum_spend todays_totals();

/// The agents of `kernel` whose next call of a model no budget of the day allows, their own or the
/// node's: what is left is less than the answer alone may take. With what a person reads of it. An
/// agent that calls no models is never among them. `totals`: the reply to todays_totals.
std::map<std::string, std::string> spent_agents(const config::configuration& c,
                                                const config::kernel& kernel,
                                                const std::string& node_id,
                                                const store::sum_spend::reply& totals);

} // namespace boyd::queue
