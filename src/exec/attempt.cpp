#include "boyd/exec/attempt.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/exit_class.hpp"
#include "words.hpp"

#include <algorithm>
#include <csignal>
#include <iterator>

namespace boyd::exec {

namespace {

/// The last line that says something. Of an output that ends with a JSON value the first one.
std::string last_said(const line_watch& lines) {
  const auto& last = lines.last_words();
  const bool is_json =
      !last.empty() && std::string_view("{}[]\"").find(last.front()) != std::string_view::npos;
  const auto& text = is_json || last.empty() ? lines.first() : last;
  return text.empty() ? "completed" : text;
}

/// stderr gets at most this part of the cap.
constexpr std::size_t stderr_share = 4;
constexpr std::string_view stderr_title = "--- stderr ---\n";
/// Output of a check that is kept for its message.
constexpr std::size_t check_output_bytes = 8u << 10;
/// A shorter wait for places is not worth a word.
constexpr milliseconds told_wait = 1s;

using kind_t = config::requirement::kind_t;

const char* describe(cancel_reason reason) {
  switch (reason) {
  case cancel_reason::by_operator:
    return "cancelled by an operator";
  case cancel_reason::shutdown:
  case cancel_reason::hurry:
    return "stopped by shutdown";
  case cancel_reason::lease_lost:
    return "the lease was lost";
  case cancel_reason::next_cycle:
    break;
  }
  return "cancelled for the next cycle (overlap: cancel)";
}

} // namespace

attempt_core::attempt_core(attempt_options options)
    : options_(std::move(options)), out_(options_.output_bytes),
      err_(options_.output_bytes / stderr_share), check_out_(check_output_bytes) {
  outcome_.session_id = options_.session_id;
}

attempt_effects attempt_core::begin(steady_time now) {
  if (phase_ != phase::fresh)
    return {};
  phase_ = phase::running;
  times_out_at_ = now + options_.timeout;
  if (options_.wall_budget.count() > 0)
    wall_ends_ = now + options_.wall_budget;
  set_deadline();
  last_progress_ = now;
  attempt_effects effects;
  static_assert(std::variant_size_v<decltype(options_.work)> == 3, "a new one begins here");
  if (auto* spec = std::get_if<process_spec>(&options_.work)) {
    process_alive_ = true;
    effects.push_back(effect::start_process{0, std::move(*spec)});
    if (options_.no_output_timeout.count() > 0)
      effects.push_back(effect::arm_timer{timer_kind::silence, now + options_.no_output_timeout});
    if (options_.cli) {
      events_.emplace(*options_.cli->adapter);
      startup_at_ = now + options_.cli->startup_timeout;
      if (options_.cli->startup_timeout.count() > 0)
        effects.push_back(effect::arm_timer{timer_kind::startup, startup_at_});
      effects.push_back(effect::arm_timer{timer_kind::linger, now + linger_time});
    }
  } else if (auto* talk = std::get_if<conversation>(&options_.work)) {
    chat_.emplace(std::move(*talk));
    if (options_.no_output_timeout.count() > 0)
      effects.push_back(effect::arm_timer{timer_kind::silence, now + options_.no_output_timeout});
    arm_deadline(effects);
    auto first = after_talk(chat_->begin(), now);
    std::ranges::move(first, std::back_inserter(effects));
    return effects;
  } else {
    answer_at_ = now + std::get<config::script_executor::answer>(options_.work).delay;
    effects.push_back(effect::arm_timer{timer_kind::answer, answer_at_});
  }
  arm_deadline(effects);
  return effects;
}

void attempt_core::set_deadline() {
  budget_ends_first_ = wall_ends_ && *wall_ends_ <= times_out_at_;
  deadline_ = budget_ends_first_ ? *wall_ends_ : times_out_at_;
}

void attempt_core::arm_deadline(attempt_effects& effects) const {
  effects.push_back(effect::arm_timer{timer_kind::deadline, deadline_});
  if (wall_ends_)
    effects.push_back(effect::arm_timer{timer_kind::budget,
                                        *wall_ends_ - options_.wall_budget *
                                                          (100 - limits::budget_warning) / 100});
}

bool attempt_core::on_output(run_index run, output_stream stream, std::string_view bytes,
                             steady_time now) {
  if (run != run_ || phase_ == phase::finished)
    return false;
  if (run > 0) {
    check_out_.append(bytes);
    return false;
  }
  const bool is_out = stream == output_stream::out;
  (is_out ? out_ : err_).append(bytes);
  if (events_ && !is_out)
    events_->complain(bytes);
  // What a program says beside its events does not show that it moves on.
  const bool moves_on = !events_ || (is_out && events_->append(bytes));
  if (moves_on)
    last_progress_ = now;
  if (events_ && events_->report().final && !final_at_)
    final_at_ = now;
  if (!events_ || !is_out)
    (is_out ? out_lines_ : err_lines_).append(bytes);
  return is_out && has_news_of_budget();
}

attempt_effects attempt_core::on_exit(run_index run, const process_exit& e, steady_time now) {
  if (run != run_ || !process_alive_)
    return {};
  process_alive_ = false;
  outcome_.host_lost = e.host_lost;
  if (run > 0) {
    if (phase_ != phase::checking)
      return finish();
    check_result r =
        check_command(options_.require[check_].argv, e, check_out_.render(check_output_bytes).text);
    if (!check_failure_.empty())
      r = {false, check_failure_};
    else if (!r.passed && is_retryable(classify_exit(e, {})))
      check_class_ = failure_class::transient;
    return check_done(r);
  }
  exit_ = e;
  exit_known_ = true;
  outcome_.exit_code = e.started && e.signal == 0 ? e.exit_code : -1;
  end_events();
  out_lines_.finish();
  err_lines_.finish();
  if (phase_ == phase::ending && !is_done_anyway()) {
    read_claim();
    return finish();
  }
  return events_ && e.started ? judge_events(e, now) : judge_exit(e, now);
}

attempt_effects attempt_core::on_lost_exit(run_index run) {
  if (run != run_ || !process_alive_)
    return {};
  process_alive_ = false;
  constexpr const char* const why = "the program ended for an unknown reason";
  if (run > 0 && phase_ == phase::checking) {
    check_class_ = failure_class::transient;
    return check_done({false, check_failure_.empty() ? why : check_failure_});
  }
  if (phase_ == phase::running) {
    end_events();
    if (events_ && final_at_) {
      exit_lost_ = true;
      return judge_events({}, *final_at_);
    }
    return end_run(execution_verdict::indeterminate, why, steady_time{});
  }
  return finish();
}

attempt_effects attempt_core::on_talk(const std::function<chat_effects(chat_loop&)>& event,
                                      steady_time now) {
  if (!chat_ || phase_ != phase::running)
    return {};
  last_progress_ = now;
  return after_talk(event(*chat_), now);
}

void attempt_core::hear(const std::function<void(chat_loop&)>& event, steady_time now) {
  if (!chat_ || phase_ != phase::running)
    return;
  const auto before = chat_->progress();
  event(*chat_);
  if (chat_->progress() != before)
    last_progress_ = now;
}

attempt_effects attempt_core::after_talk(chat_effects effects, steady_time now) {
  attempt_effects wrapped;
  for (auto& e : effects)
    if (!std::holds_alternative<effect::talk_over>(e))
      wrapped.emplace_back(effect::talk{std::move(e)});
  count_waiting(wrapped, now);
  if (!chat_->over() || phase_ != phase::running)
    return wrapped;
  auto end = judge_talk(now);
  std::ranges::move(end, std::back_inserter(wrapped));
  return wrapped;
}

/// The calls that fill a provider's queue may be others' and hang: what a run waits for its place
/// is not its own time.
void attempt_core::count_waiting(attempt_effects& effects, steady_time now) {
  if (chat_->waits_for_place()) {
    waits_since_ = waits_since_.value_or(now);
    return;
  }
  if (!waits_since_)
    return;
  const auto waited = std::chrono::duration_cast<milliseconds>(now - *waits_since_);
  waits_since_.reset();
  waited_ += waited;
  times_out_at_ += waited;
  set_deadline();
  if (!std::exchange(deadline_armed_, true))
    effects.push_back(effect::arm_timer{timer_kind::deadline, deadline_});
}

attempt_effects attempt_core::start_checks(steady_time now) {
  if (options_.require.empty())
    return finish();
  phase_ = phase::checking;
  check_ = 0;
  deadline_ = std::max(deadline_, now + minimum_check_time);
  auto effects = next_check();
  if (phase_ == phase::checking)
    effects.push_back(effect::arm_timer{timer_kind::deadline, deadline_});
  return effects;
}

/// Decides checks until one needs the outside world or none is left.
attempt_effects attempt_core::next_check() {
  for (; check_ < options_.require.size(); ++check_) {
    const auto& wanted = options_.require[check_];
    check_result r;
    const bool pure = wanted.kind == kind_t::exit_zero || wanted.kind == kind_t::no_question;
    if (!pure && !check_failure_.empty()) {
      // The time is over; an answer that is still on its way must not meet another check.
      failed_checks_.push_back(check_failure_);
      findings_.push_back({false, check_failure_});
      continue;
    }
    switch (wanted.kind) {
    case kind_t::exit_zero:
      r = check_exit_zero(exit_);
      break;
    case kind_t::no_question:
      r = check_no_question(out_lines_.last_words());
      break;
    case kind_t::artifact:
      return {effect::stat_file{resolve(wanted.argument)}};
    case kind_t::schema:
      return {effect::read_file{resolve(wanted.argument), schema_bytes}};
    case kind_t::command:
      if (commands_ < options_.checks.size()) {
        run_ = ++commands_;
        process_alive_ = true;
        killed_ = false;
        check_out_ = output_keeper(check_output_bytes);
        return {effect::start_process{run_, options_.checks[commands_ - 1]}};
      }
      r = {false, "command: this check has no process"};
      break;
    case kind_t::tool_action:
      r = check_tool_action();
      break;
    }
    findings_.push_back(r);
    if (!r.passed)
      failed_checks_.push_back(r.text);
  }
  return finish();
}

check_result attempt_core::check_tool_action() const {
  if (!chat_)
    return {false, "tool_action: this executor has no tools"};
  return chat_->acted() ? check_result{true, {}}
                        : check_result{false, "tool_action: no tool was used successfully"};
}

attempt_effects attempt_core::check_done(const check_result& r) {
  findings_.push_back(r);
  if (!r.passed)
    failed_checks_.push_back(r.text);
  ++check_;
  return next_check();
}

attempt_effects attempt_core::on_file_info(const result<file_info>& info, steady_time) {
  if (phase_ != phase::checking || options_.require[check_].kind != kind_t::artifact)
    return {};
  return check_done(check_artifact(options_.require[check_].argument, info, options_.started_at));
}

attempt_effects attempt_core::on_file_text(const result<std::string>& text, steady_time) {
  if (phase_ != phase::checking || options_.require[check_].kind != kind_t::schema)
    return {};
  return check_done(check_schema(options_.require[check_].argument, text,
                                 out_.render(options_.output_bytes).text, out_lines_.last()));
}

attempt_effects attempt_core::on_timer(timer_kind kind, steady_time now) {
  take_pending_event(now);
  switch (kind) {
  case timer_kind::deadline:
    return on_deadline(now);
  case timer_kind::silence:
    return on_silence(now);
  case timer_kind::startup:
    return on_startup(now);
  case timer_kind::linger:
    return on_linger(now);
  case timer_kind::kill:
    if (!process_alive_ || killed_ || now < kill_at_ || kill_at_ == steady_time{})
      return {};
    return kill_process(now);
  case timer_kind::give_up:
    if (!process_alive_ || !killed_ || now < give_up_at_)
      return {};
    return give_up();
  case timer_kind::answer:
    if (phase_ != phase::running || now < answer_at_ ||
        !std::holds_alternative<config::script_executor::answer>(options_.work))
      return {};
    return judge_answer(now);
  case timer_kind::budget:
    return warn_of_wall();
  }
  return {};
}

attempt_effects attempt_core::warn_of_wall() {
  if (phase_ != phase::running || !wall_ends_)
    return {};
  return {effect::talk{effect::warn{"the budget of the run (wall) is used up to " +
                                    std::to_string(limits::budget_warning) + " %"}}};
}

std::string attempt_core::timed_out() const {
  auto why = "timed out after " + format_duration(options_.timeout);
  if (chat_ && !chat_->doing().empty())
    why += ": " + chat_->doing();
  if (waited_ >= told_wait)
    why += " (in addition, it waited " + format_duration(waited_) + " for its provider)";
  return why;
}

attempt_effects attempt_core::on_deadline(steady_time now) {
  const bool wall_is_over = wall_ends_ && now >= *wall_ends_;
  if (phase_ == phase::running && waits_since_ && !wall_is_over) {
    deadline_armed_ = false;
    return wall_ends_ ? attempt_effects{effect::arm_timer{timer_kind::deadline, *wall_ends_}}
                      : attempt_effects{};
  }
  if (now < deadline_)
    return phase_ == phase::running && chat_
               ? attempt_effects{effect::arm_timer{timer_kind::deadline, deadline_}}
               : attempt_effects{};
  if (phase_ == phase::running && final_at_ && process_alive_)
    return lingered_ ? attempt_effects{} : end_lingering(now);
  if (phase_ == phase::running && (budget_ends_first_ || (waits_since_ && wall_is_over)))
    return end_run(execution_verdict::failed,
                   "the run's budget of time, " + format_duration(options_.wall_budget) +
                       ", is used up (budget.run.wall)",
                   now, failure_class::policy);
  if (phase_ == phase::running)
    return end_run(execution_verdict::timed_out, timed_out(), now);
  if (phase_ != phase::checking || !check_failure_.empty())
    return {};
  check_failure_ = "no time left for the check";
  check_class_ = failure_class::transient;
  if (process_alive_)
    return stop_process(now);
  return check_done({false, check_failure_});
}

attempt_effects attempt_core::on_silence(steady_time now) {
  if (phase_ != phase::running || options_.no_output_timeout.count() == 0)
    return {};
  if (chat_ && chat_->waits_for_others())
    last_progress_ = now; // a queue, a tool or a person is not the model's silence
  const auto due = last_progress_ + options_.no_output_timeout;
  if (now < due)
    return {effect::arm_timer{timer_kind::silence, due}};
  if (final_at_) // what it has to say is said: timer_kind::linger ends it
    return {};
  return end_run(execution_verdict::stalled,
                 "no output for " + format_duration(options_.no_output_timeout), now);
}

attempt_effects attempt_core::fail_run(std::string why, failure_class failure, steady_time now) {
  if (phase_ != phase::running)
    return {};
  return end_run(execution_verdict::failed, std::move(why), now, failure);
}

attempt_effects attempt_core::cancel(cancel_reason reason, steady_time now) {
  if (phase_ == phase::finished)
    return {};
  lease_lost_ = lease_lost_ || reason == cancel_reason::lease_lost;
  const bool hurries = reason == cancel_reason::hurry && !std::exchange(hurried_, true);
  const bool shortens = process_alive_ && phase_ == phase::ending &&
                        // Said again, it is sent again: the first signal may be lost.
                        (reason == cancel_reason::lease_lost || (hurries && !killed_));
  if (cancelled_)
    return shortens ? stop_process(now) : attempt_effects{};
  cancelled_ = reason;
  const char* const why = describe(reason);
  if (phase_ == phase::ending) {
    outcome_.execution = execution_verdict::cancelled;
    outcome_.failure = failure_class::none;
    outcome_.error = why;
    return shortens ? stop_process(now) : attempt_effects{};
  }
  return end_run(execution_verdict::cancelled, why, now);
}

attempt_effects attempt_core::end_run(execution_verdict verdict, std::string why, steady_time now,
                                      failure_class failure) {
  phase_ = phase::ending;
  outcome_.execution = verdict;
  outcome_.failure = verdict == execution_verdict::cancelled ? failure_class::none : failure;
  outcome_.error = std::move(why);
  if (chat_ && !chat_->over())
    return stop_talk();
  return process_alive_ ? stop_process(now) : finish();
}

attempt_effects attempt_core::stop_talk() {
  attempt_effects effects;
  for (auto& e : chat_->stop(outcome_.error))
    effects.emplace_back(effect::talk{std::move(e)});
  const auto& text = chat_->outcome().text;
  out_.append(text);
  out_lines_.append(text);
  out_lines_.finish();
  auto end = finish();
  std::ranges::move(end, std::back_inserter(effects));
  return effects;
}

/// TERM now, KILL after the grace.
attempt_effects attempt_core::stop_process(steady_time now) {
  if (lease_lost_)
    return kill_process(now);
  const auto at = now + (hurried_ ? limits::hurried_grace : limits::term_grace);
  // A hurry gives no more time than there was.
  kill_at_ = hurried_ && kill_at_ > now ? std::min(kill_at_, at) : at;
  return {effect::signal_process{run_, SIGTERM}, effect::arm_timer{timer_kind::kill, kill_at_}};
}

attempt_effects attempt_core::kill_process(steady_time now) {
  if (!std::exchange(killed_, true))
    give_up_at_ = now + kill_wait;
  return {effect::signal_process{run_, SIGKILL},
          effect::arm_timer{timer_kind::give_up, give_up_at_}};
}

attempt_effects attempt_core::give_up() {
  process_alive_ = false;
  outcome_.execution = execution_verdict::indeterminate;
  outcome_.failure = failure_class::environment;
  outcome_.error += outcome_.error.empty() ? "" : "; ";
  outcome_.error += "the process did not end after SIGKILL";
  phase_ = phase::ending;
  return finish();
}

attempt_effects attempt_core::finish() {
  end_events();
  const bool was_checking = phase_ == phase::checking;
  phase_ = phase::finished;
  if (!options_.require.empty()) {
    const bool held = was_checking && failed_checks_.empty();
    outcome_.verification = held ? verification_verdict::passed : verification_verdict::failed;
  }
  if (outcome_.execution == execution_verdict::succeeded &&
      outcome_.claim == claim_verdict::failed) {
    outcome_.failure = claim_class_;
    outcome_.error = claim_unreadable_ ? "its claim is unreadable: the last line must be one JSON "
                                         "object such as {\"status\":\"failed\",\"summary\":\"…\"}"
                                       : "claims failure";
    if (!claim_summary_.empty())
      outcome_.error += ": " + claim_summary_;
  } else if (outcome_.execution == execution_verdict::succeeded && !failed_checks_.empty()) {
    outcome_.failure = check_class_;
  }
  for (const auto& text : failed_checks_)
    outcome_.error += (outcome_.error.empty() ? "" : "; ") + text;
  heed_limit();
  outcome_.error = sanitize_utf8(outcome_.error);
  const bool well = is_success(outcome_);
  outcome_.summary = summary_line(!out_lines_.declared().empty() ? out_lines_.declared()
                                  : !claim_summary_.empty()      ? claim_summary_
                                  : !well                        ? outcome_.error
                                                                 : last_said(out_lines_));
  compose_output();
  note_retry_after();
  return {effect::finish{boxed<run_outcome>(std::move(outcome_))}};
}

void attempt_core::compose_output() {
  auto errors = err_.render(options_.output_bytes / stderr_share);
  const auto used = std::min(errors.text.size(), options_.output_bytes);
  auto text = out_.render(options_.output_bytes - used);
  outcome_.output = std::move(text.text);
  outcome_.output_cut = text.cut + errors.cut;
  if (!errors.text.empty()) {
    if (!outcome_.output.empty() && outcome_.output.back() != '\n')
      outcome_.output += '\n';
    outcome_.output.append(stderr_title).append(errors.text);
  }
  outcome_.usage = chat_ ? chat_->usage() : usage_of_program();
  if (options_.context != context_level::full)
    outcome_.usage.context = name_of(options_.context);
  outcome_.usage.too_long = outcome_.usage.too_long || too_long_;
}

std::string attempt_core::resolve(const std::string& path) const {
  return path.starts_with('/') ? path : options_.base_directory + '/' + path;
}

} // namespace boyd::exec
