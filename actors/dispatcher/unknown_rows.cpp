#include "actors/dispatcher/unknown_rows.hpp"

#include <utility>

namespace boyd {

namespace {

const char* why(unknown_rows which) {
  switch (which) {
  case unknown_rows::of_crashed:
    return "the dispatcher crashed while this ran";
  case unknown_rows::of_renewed:
    return "the dispatcher was restarted while this ran";
  case unknown_rows::of_claim:
    break;
  }
  return "the answer to the claim was lost; it did not run";
}

} // namespace

settlement settlement_of(dispatch row, unknown_rows which, const queue::retry_limits& limits,
                         double unit) {
  run_outcome o;
  o.execution = execution_verdict::indeterminate;
  o.failure = failure_class::transient;
  o.error = why(which);
  o.summary = o.error;
  claimed_dispatch claimed;
  claimed.row = std::move(row);
  return queue::decide_settlement(claimed, o, limits, unit,
                                  which == unknown_rows::of_crashed
                                      ? queue::stop_cause::none
                                      : queue::stop_cause::shutting_down);
}

} // namespace boyd
