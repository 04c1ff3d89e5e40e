#include "boyd/exec/attempt.hpp"
#include "boyd/exec/exit_class.hpp"
#include "claim.hpp"
#include "words.hpp"

#include <utility>

/// The part of attempt_core that judges the end of programs, scripts and conversations.
namespace boyd::exec {

attempt_effects attempt_core::judge_exit(const process_exit& e, steady_time now) {
  read_claim();
  outcome_.failure = classify_exit(e, options_.exit_classes);
  const bool limited = outcome_.failure == failure_class::none && tells_only_of_limit();
  if (outcome_.failure == failure_class::none && !limited) {
    outcome_.execution = execution_verdict::succeeded;
    return start_checks(now);
  }
  outcome_.execution = execution_verdict::failed;
  if (limited)
    return fail_by_events(failure_class::transient, summary_line(out_lines_.last()));
  outcome_.error = describe_exit(e);
  outcome_.no_room = is_shortage(e);
  if (!err_lines_.last().empty()) // of a sandbox that did not start it, too
    outcome_.error += ": " + err_lines_.last();
  return finish();
}

attempt_effects attempt_core::judge_answer(steady_time now) {
  const auto& answer = std::get<config::script_executor::answer>(options_.work);
  out_.append(answer.output);
  out_lines_.append(answer.output);
  out_lines_.finish();
  read_claim();
  if (!answer.summary.empty())
    claim_summary_ = answer.summary;
  exit_known_ = true;
  const auto failure = failure_class_from(answer.fail);
  if (answer.fail.empty() || failure == failure_class::none) {
    exit_.exit_code = 0;
    outcome_.exit_code = 0;
    outcome_.execution = execution_verdict::succeeded;
    return start_checks(now);
  }
  exit_.exit_code = 1;
  outcome_.exit_code = 1;
  outcome_.execution = execution_verdict::failed;
  outcome_.failure = failure.value_or(failure_class::deterministic);
  outcome_.error = "the script answers with a failure (" + answer.fail + ")";
  return finish();
}

attempt_effects attempt_core::judge_talk(steady_time now) {
  const auto& end = chat_->outcome();
  out_.append(end.text);
  out_lines_.append(end.text);
  out_lines_.finish();
  outcome_.execution = end.execution;
  outcome_.failure = end.failure;
  outcome_.error = summary_line(end.error);
  if (end.execution != execution_verdict::succeeded)
    return finish();
  if (tells_only_of_limit()) {
    outcome_.execution = execution_verdict::failed;
    return fail_by_events(failure_class::transient, summary_line(end.text));
  }
  exit_.exit_code = 0; // for `exit_zero`: it ended well
  read_claim();
  return start_checks(now);
}

void attempt_core::read_claim() {
  // Events are no claims: of a program that tells some, its answer is looked into.
  auto found = find_claim(events_ && !plain_events() ? events_->report().text
                                                     : out_.render(options_.output_bytes).text);
  outcome_.claim = found.verdict;
  claim_unreadable_ = found.is_unreadable;
  claim_summary_ = std::move(found.summary);
  claim_class_ = found.failure.value_or(claim_class_);
  claim_has_class_ = found.failure.has_value();
}

} // namespace boyd::exec
