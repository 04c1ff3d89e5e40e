#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/attempt.hpp"
#include "boyd/model/limit_text.hpp"

#include <algorithm>

/// The part of attempt_core about limits of use that programs and providers tell of.
namespace boyd::exec {

namespace {

using model::told_limit;

/// Of the standard error so much is looked into, and so many lines.
constexpr std::size_t searched_bytes = 8u << 10;
constexpr int searched_lines = 20;

/// The newest line that tells of a limit.
std::optional<told_limit> limit_in_lines(std::string_view text) {
  text.remove_prefix(text.size() - std::min(text.size(), searched_bytes));
  for (int i = 0; i < searched_lines && !text.empty(); ++i) {
    const auto end = text.find_last_not_of("\r\n");
    if (end == std::string_view::npos)
      break;
    text = text.substr(0, end + 1);
    const auto begin = text.rfind('\n') + 1; // npos + 1 is 0
    if (auto limit = model::find_limit(text.substr(begin)))
      return limit;
    text = text.substr(0, begin);
  }
  return std::nullopt;
}

} // namespace

bool attempt_core::tells_only_of_limit() const {
  if (chat_)
    return model::is_limit_notice(chat_->outcome().text);
  const bool told = events_ && !plain_events();
  return model::is_limit_notice(told ? events_->report().text : out_.render(searched_bytes).text);
}

std::optional<told_limit> attempt_core::limit_told() const {
  auto limit = model::find_limit(outcome_.error);
  if (limit || !std::holds_alternative<process_spec>(options_.work) || !exit_known_)
    return limit;
  const bool told = events_ && !plain_events();
  if (told && !events_->report().error.empty())
    return model::find_limit(events_->report().error);
  if (told && model::is_limit_notice(events_->report().text))
    return model::find_limit(events_->report().text);
  if (!told)
    limit = model::find_limit(out_lines_.last_words());
  return limit ? limit : limit_in_lines(err_.render(searched_bytes).text);
}

/// Whether the failure's class is somebody's choice.
bool attempt_core::has_chosen_class() const {
  if (outcome_.execution == execution_verdict::succeeded)
    return claim_has_class_;
  if (events_)
    return events_->report().failed && events_->report().failure.has_value();
  return exit_known_ && exit_.started && options_.exit_classes.contains(exit_.exit_code);
}

void attempt_core::heed_limit() {
  const bool fails = outcome_.execution == execution_verdict::succeeded
                         ? outcome_.claim == claim_verdict::failed
                         : outcome_.execution != execution_verdict::cancelled;
  if (!fails || outcome_.failure == failure_class::policy ||
      std::holds_alternative<config::script_executor::answer>(options_.work))
    return;
  const auto limit = limit_told();
  if (!limit)
    return;
  auto& failure = outcome_.failure;
  const bool credit = limit->kind == told_limit::kind_t::credit;
  if (failure == failure_class::deterministic && !has_chosen_class())
    failure = credit ? failure_class::environment : failure_class::transient;
  // Without a time it is a person's turn.
  else if (failure == failure_class::environment && limit->until && !has_chosen_class())
    failure = failure_class::transient;
  const auto now = options_.time_of_day ? options_.time_of_day() : options_.started_at;
  const auto wait =
      limit->until ? model::wait_until(*limit->until, now, options_.zones.get()) : std::nullopt;
  if (!wait || !is_retryable(failure))
    return;
  retry_after_ = std::min(*wait, limits::longest_told_wait);
  outcome_.error += "; not before " + format_rfc3339(now + retry_after_);
  if (*wait > retry_after_)
    outcome_.error += ", for " + format_rfc3339(now + *wait) + " is further away than " +
                      format_duration(limits::longest_told_wait);
}

/// The longer one counts of two that were told.
void attempt_core::note_retry_after() {
  auto& told = outcome_.usage.retry_after_ms;
  if (retry_after_.count() > 0)
    told = std::max<std::int64_t>(retry_after_.count(), told.value_or(0));
}

} // namespace boyd::exec
