#include "boyd/core/limits.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/exec/exit_class.hpp"
#include "boyd/model/error_words.hpp"
#include "words.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

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

/// More is no figure but a mistake of the program's.
constexpr std::int64_t most_told = std::int64_t{1} << 50;

/// One figure that a program tells, and its limit; without one it is 0.
struct figure {
  std::string name;
  std::int64_t used = 0;
  std::int64_t limit = 0;

  bool is_near() const { return limit > 0 && percent() >= limits::budget_warning; }
  bool is_passed() const { return limit > 0 && used > limit; }
  /// With a limit only.
  std::int64_t percent() const { return used * 100 / limit; }
};

std::array<figure, 3> figures_of(const cli_report& told, const config::budget_limit& budget) {
  const auto least = [](std::int64_t n) { return std::min(n, most_told); };
  return {{{"turns", least(told.turns), budget.turns},
           {"tokens", least(told.input) + least(told.output), budget.tokens},
           {"cost", least(told.cost), budget.cost}}};
}

/// "the run's budget of 2 turns is used up, the program told of 40 (budget.run.turns)"; empty: none
/// is.
std::string passed_budget(const cli_report& told, const config::budget_limit& budget) {
  for (const auto& f : figures_of(told, budget)) {
    if (!f.is_passed())
      continue;
    const bool money = f.name == "cost";
    const auto words = [&](std::int64_t n) {
      return money ? format_dollars(n) : std::to_string(n);
    };
    return "the run's budget of " + words(f.limit) + (money ? " dollars" : " " + f.name) +
           " is used up; the program reported " + words(f.used) + " (budget.run." + f.name + ")";
  }
  return {};
}

} // namespace

/// Once for each step: a program may tell its figures with every line.
bool attempt_core::has_news_of_budget() {
  if (!events_ || phase_ != phase::running)
    return false;
  const auto figures = figures_of(events_->report(), options_.cli->budget);
  const int reached = std::ranges::any_of(figures, &figure::is_passed) ? 2
                      : std::ranges::any_of(figures, &figure::is_near) ? 1
                                                                       : 0;
  return reached > std::exchange(figures_told_, std::max(figures_told_, reached));
}

attempt_effects attempt_core::warn_of_figures() {
  attempt_effects effects;
  for (const auto& f : figures_of(events_->report(), options_.cli->budget))
    if (f.is_near() && figures_warned_.insert(f.name).second)
      effects.emplace_back(
          effect::talk{effect::warn{"the budget of the run (" + f.name + ") is used up to " +
                                    std::to_string(f.percent()) + " %"}});
  return effects;
}

attempt_effects attempt_core::on_figures(steady_time now) {
  if (!events_ || phase_ != phase::running)
    return {};
  auto effects = warn_of_figures();
  // After its final event it only has to end, and is judged then.
  auto why = final_at_ ? std::string() : passed_budget(events_->report(), options_.cli->budget);
  if (why.empty())
    return effects;
  auto end = end_run(execution_verdict::failed, std::move(why), now, failure_class::policy);
  std::ranges::move(end, std::back_inserter(effects));
  return effects;
}

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
  out_lines_.append(plain_events() ? out_.render(options_.output_bytes).text : report.text);
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
  auto effects = warn_of_figures();
  auto end = judge_told(e, now);
  std::ranges::move(end, std::back_inserter(effects));
  return effects;
}

attempt_effects attempt_core::judge_told(const process_exit& e, steady_time now) {
  const auto& report = events_->report();
  const auto exit_class =
      lingered_ ? failure_class::none : classify_exit(e, options_.cli->adapter->exit_codes);
  const bool plain = plain_events();
  read_claim();
  outcome_.execution = execution_verdict::failed;
  outcome_.failure = failure_class::none;
  outcome_.error.clear();
  if (auto why = passed_budget(report, options_.cli->budget); !why.empty()) {
    outcome_.failure = failure_class::policy; // also when it says that it failed: once is enough
    outcome_.error = std::move(why);
    return finish();
  }
  if (report.failed)
    return fail_by_events(report.failure.value_or(exit_class == failure_class::none
                                                      ? failure_class::deterministic
                                                      : exit_class),
                          report.error.empty() ? "it reported failure" : report.error);
  if (!report.final && !plain) {
    outcome_.execution = execution_verdict::indeterminate;
    return fail_by_events(exit_class == failure_class::none ? failure_class::transient : exit_class,
                          without_final_event(e));
  }
  if (exit_class != failure_class::none && plain) {
    auto why = describe_exit(e);
    if (!err_lines_.last().empty())
      why += ": " + err_lines_.last();
    return fail_by_events(exit_class, std::move(why));
  }
  if (tells_only_of_limit())
    return fail_by_events(failure_class::transient, out_lines_.last());
  if (report.denied > 0 && options_.cli->denials_fail) {
    outcome_.failure = failure_class::policy;
    outcome_.error = describe_denials(report);
    return finish();
  }
  if (says_nothing(plain ? out_.render(options_.output_bytes).text : report.text))
    return fail_by_events(failure_class::transient, "it ended without an answer");
  // Its work is done, and not done again for the sake of its clean-up.
  if (exit_class != failure_class::none || exit_lost_)
    late_end_ = late_end(e);
  outcome_.execution = execution_verdict::succeeded;
  return start_checks(now);
}

std::string attempt_core::late_end(const process_exit& e) const {
  if (exit_lost_)
    return "the program ended for an unknown reason";
  auto text = describe_exit(e);
  if (!err_lines_.last().empty())
    text += ": " + std::string(cut_characters(err_lines_.last(), event_word_characters));
  return sanitize_utf8(text);
}

bool attempt_core::plain_events() const {
  return options_.cli && options_.cli->adapter->parser == config::cli_adapter::parser_t::text;
}

/// Whether it told its final event before Boyd ended it for being late, or for a shutdown.
bool attempt_core::is_done_anyway() const {
  if (!events_ || !events_->report().final || plain_events() || lease_lost_)
    return false;
  const bool late = outcome_.execution == execution_verdict::timed_out ||
                    outcome_.execution == execution_verdict::stalled;
  const bool stops = cancelled_ == cancel_reason::shutdown || cancelled_ == cancel_reason::hurry;
  // Checks are not begun while the node stops.
  return cancelled_ ? stops && options_.require.empty() : late;
}

/// Its final event may stand there without the end of its line, or be all that it prints.
void attempt_core::take_pending_event(steady_time now) {
  if (!events_ || events_ended_ || phase_ != phase::running || !events_->take_pending())
    return;
  last_progress_ = now;
  if (events_->report().final && !final_at_)
    final_at_ = now;
}

std::string attempt_core::without_final_event(const process_exit& e) const {
  const auto& report = events_->report();
  auto why = "no final event: " + describe_exit(e);
  if (!report.error.empty())
    why += ": " + report.error;
  else if (!err_lines_.last().empty())
    why += ": " + std::string(cut_characters(err_lines_.last(), event_word_characters));
  if (report.no_json > 0)
    why += "; lines that are not JSON: " + std::to_string(report.no_json);
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

run_usage attempt_core::usage_of_program() const {
  if (events_)
    return usage_of(events_->report(), options_.cli->adapter->name, exit_.wall, late_end_);
  run_usage u;
  u.output_bytes = static_cast<std::int64_t>(out_.total() + err_.total());
  if (exit_known_ && exit_.started) {
    u.max_rss_kb = exit_.max_rss_kb;
    u.system_ms = exit_.system.count();
    u.user_ms = exit_.user.count();
    u.wall_ms = exit_.wall.count();
  }
  return u;
}

} // namespace boyd::exec
