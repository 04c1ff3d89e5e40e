#include "boyd/core/text.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/exec/exit_class.hpp"
#include "boyd/model/error_words.hpp"

/// The part of attempt_core about agents with a command line of their own.
namespace boyd::exec {

namespace {

/// "denied: Bash, Write (3 times)".
std::string describe_denials(const cli_report& r) {
  std::string out = "denied: ";
  for (const auto& name : r.denials)
    out += (out.back() == ' ' ? "" : ", ") + name;
  return r.denied == 1 ? out : out + " (" + std::to_string(r.denied) + " times)";
}

} // namespace

/// The answer takes the place of the events, which stay where there is no answer to show.
void attempt_core::end_events() {
  if (!events_ || events_ended_)
    return;
  events_ended_ = true;
  events_->finish();
  const auto& report = events_->report();
  if (report.final && !final_at_)
    final_at_ = last_progress_;
  if (report.final || !report.text.empty()) {
    out_ = output_keeper(options_.output_bytes);
    out_.append(report.text);
  }
  const bool plain = options_.cli->adapter->parser == config::cli_adapter::parser_t::text;
  out_lines_.append(plain ? out_.render(options_.output_bytes).text : report.text);
  out_lines_.append("\n");
}

/// What was too long for its model may be tried again, as in a conversation: with less of it.
attempt_effects attempt_core::fail_by_events(failure_class failure, std::string why) {
  too_long_ = model::says_too_long(why);
  const bool may_pass = too_long_ && failure == failure_class::deterministic;
  outcome_.failure = may_pass ? failure_class::transient : failure;
  outcome_.error = std::move(why);
  return finish();
}

attempt_effects attempt_core::judge_events(const process_exit& e, steady_time now) {
  const auto& report = events_->report();
  const auto exit_class =
      lingered_ ? failure_class::none : classify_exit(e, options_.cli->adapter->exit_codes);
  const bool plain = options_.cli->adapter->parser == config::cli_adapter::parser_t::text;
  read_claim();
  outcome_.execution = execution_verdict::failed;
  if (report.failed)
    return fail_by_events(report.failure.value_or(exit_class == failure_class::none
                                                      ? failure_class::deterministic
                                                      : exit_class),
                          report.error.empty() ? "it says that it failed" : report.error);
  if (!report.final && !plain) {
    outcome_.execution = execution_verdict::indeterminate;
    return fail_by_events(exit_class == failure_class::none ? failure_class::transient : exit_class,
                          without_final_event(e));
  }
  if (exit_class != failure_class::none) {
    auto why = (plain ? "" : "it said that it was done, then: ") + describe_exit(e);
    if (!err_lines_.last().empty())
      why += ": " + err_lines_.last();
    return fail_by_events(exit_class, std::move(why));
  }
  if (report.denied > 0 && options_.cli->denials_fail) {
    outcome_.failure = failure_class::policy;
    outcome_.error = describe_denials(report);
    return finish();
  }
  outcome_.execution = execution_verdict::succeeded;
  return start_checks(now);
}

std::string attempt_core::without_final_event(const process_exit& e) const {
  const auto& report = events_->report();
  auto why = "no final event: " + describe_exit(e);
  if (!report.error.empty())
    why += ": " + report.error;
  else if (!err_lines_.last().empty())
    why += ": " + std::string(cut_characters(err_lines_.last(), event_word_characters));
  if (report.no_json > 0)
    why += "; lines that are no JSON: " + std::to_string(report.no_json);
  if (report.too_long > 0)
    why += "; lines too long to read: " + std::to_string(report.too_long);
  return why;
}

attempt_effects attempt_core::on_startup(steady_time now) {
  if (phase_ != phase::running || !events_ || events_->has_begun() || now < startup_at_)
    return {};
  auto why = "no first event within " + format_duration(options_.cli->startup_timeout);
  if (!err_lines_.last().empty())
    why += ": " + std::string(cut_characters(err_lines_.last(), event_word_characters));
  return end_run(execution_verdict::stalled, std::move(why), now);
}

/// Some programs wait for a child of theirs after their work is done.
attempt_effects attempt_core::on_linger(steady_time now) {
  if (phase_ != phase::running || !events_ || lingered_ || !process_alive_)
    return {};
  const auto due = final_at_ ? *final_at_ + linger_time : now + linger_time;
  if (!final_at_ || now < due)
    return {effect::arm_timer{timer_kind::linger, due}};
  return end_lingering(now);
}

attempt_effects attempt_core::end_lingering(steady_time now) {
  lingered_ = true;
  return stop_process(now);
}

} // namespace boyd::exec
