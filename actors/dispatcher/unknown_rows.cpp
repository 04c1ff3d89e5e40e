#include "actors/dispatcher/unknown_rows.hpp"

#include <utility>

namespace boyd {

settlement settlement_of(dispatch row, unknown_rows which, const queue::retry_limits& limits,
                         double unit) {
  const bool crashed = which == unknown_rows::of_crashed;
  run_outcome o;
  o.execution = execution_verdict::indeterminate;
  o.failure = failure_class::transient;
  o.error = crashed ? "the dispatcher crashed while this ran"
                    : "the answer to the claim was lost; it did not run";
  o.summary = o.error;
  claimed_dispatch claimed;
  claimed.row = std::move(row);
  return queue::decide_settlement(claimed, o, limits, unit,
                                  crashed ? queue::stop_cause::none
                                          : queue::stop_cause::shutting_down);
}

} // namespace boyd
