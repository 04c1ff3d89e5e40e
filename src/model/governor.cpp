#include "boyd/model/governor.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::model {
namespace {

constexpr double ms_per_minute = 60'000;
/// Sums of fractions are compared with this much grace.
constexpr double grain = 1e-6;
/// As every trouble's text.
constexpr std::size_t refusal_characters = 500;

bool counts(trouble_kind k) {
  return k == trouble_kind::unavailable || k == trouble_kind::overloaded ||
         k == trouble_kind::bad_answer;
}

/// Milliseconds until a bucket that lacks `missing` has it.
milliseconds time_to_fill(double missing, double per_minute) {
  return milliseconds{static_cast<std::int64_t>(std::ceil(missing * ms_per_minute / per_minute)) +
                      1};
}

trouble refusal(trouble_kind kind, const std::string& what) {
  trouble out;
  out.kind = kind;
  out.what = cut_characters(what, refusal_characters);
  return out;
}

} // namespace

governor_core::governor_core(const config::provider& settings) : limits_(settings) {
  requests_left_ = limits_.requests_per_minute;
  tokens_left_ = static_cast<double>(limits_.tokens_per_minute);
}

void governor_core::set_limits(const config::provider& settings) {
  // What was used stays used: only the change of the limit is added. Without a limit nothing
  // counts.
  requests_left_ += settings.requests_per_minute - limits_.requests_per_minute;
  tokens_left_ += static_cast<double>(settings.tokens_per_minute - limits_.tokens_per_minute);
  limits_ = settings;
  if (limits_.requests_per_minute <= 0)
    requests_left_ = 0;
  if (limits_.tokens_per_minute <= 0)
    tokens_left_ = 0;
}

std::int64_t governor_core::places() const {
  return std::max(1, limits_.max_concurrent);
}

void governor_core::fill(steady_time now) {
  const auto since = filled_at_ ? std::max(now - *filled_at_, milliseconds{0}) : milliseconds{0};
  filled_at_ = filled_at_ ? std::max(now, *filled_at_) : now;
  const double minutes = static_cast<double>(since.count()) / ms_per_minute;
  const double requests = limits_.requests_per_minute;
  const auto tokens = static_cast<double>(limits_.tokens_per_minute);
  requests_left_ = std::min(requests, requests_left_ + minutes * requests);
  tokens_left_ = std::min(tokens, tokens_left_ + minutes * tokens);
}

void governor_core::ask(ticket_id ticket, const std::string& agent, std::int64_t tokens,
                        steady_time now) {
  if (ticket == 0 || agent_of_.count(ticket) != 0 || granted_.count(ticket) != 0)
    return;
  fill(now);
  if (waiting_count_ >= governor_queue) {
    auto why = refusal(trouble_kind::overloaded, "provider " + limits_.provider_id + ": " +
                                                     std::to_string(governor_queue) +
                                                     " calls wait already");
    why.retry_after = rate_limit_pause;
    refused_.push_back({ticket, false, std::move(why)});
    return;
  }
  auto& queue = waiting_[agent];
  if (queue.empty())
    turn_.push_back(agent);
  queue.push_back({ticket, std::max<std::int64_t>(tokens, 0)});
  agent_of_.emplace(ticket, agent);
  ++waiting_count_;
}

bool governor_core::remove_waiting(ticket_id ticket) {
  const auto found = agent_of_.find(ticket);
  if (found == agent_of_.end())
    return false;
  const auto queue = waiting_.find(found->second);
  std::erase_if(queue->second, [&](const call& c) { return c.ticket == ticket; });
  if (queue->second.empty()) {
    std::erase(turn_, found->second);
    waiting_.erase(queue);
  }
  agent_of_.erase(found);
  --waiting_count_;
  return true;
}

void governor_core::drop(ticket_id ticket, steady_time now) {
  fill(now);
  if (remove_waiting(ticket))
    return;
  std::erase_if(refused_, [&](const decision& d) { return d.ticket == ticket; });
  const auto place = granted_.find(ticket);
  if (place == granted_.end())
    return;
  if (place->second.trying)
    trying_ = false;
  granted_.erase(place);
}

void governor_core::done(ticket_id ticket, std::int64_t used, const std::optional<trouble>& t,
                         steady_time now) {
  const auto place = granted_.find(ticket);
  if (place == granted_.end())
    return;
  fill(now);
  const held had = place->second;
  granted_.erase(place);
  const auto more = static_cast<double>(std::max<std::int64_t>(used, 0) - had.tokens);
  if (limits_.tokens_per_minute > 0)
    tokens_left_ = std::min(static_cast<double>(limits_.tokens_per_minute), tokens_left_ - more);
  if (had.trying)
    trying_ = false;
  learn(t, had.trying, now);
}

void governor_core::learn(const std::optional<trouble>& t, bool trying, steady_time now) {
  const bool moves = trying || !opened_at_;
  if (t && t->kind == trouble_kind::cancelled)
    return;
  if (!t || !(counts(t->kind) || t->kind == trouble_kind::rate_limited)) {
    last_trouble_ = t ? t->what : std::string{};
    if (moves) {
      failures_ = 0;
      opened_at_.reset();
    }
    return;
  }
  last_trouble_ = t->what;
  const bool limited = t->kind == trouble_kind::rate_limited;
  const auto pause = t->retry_after.value_or(limited ? rate_limit_pause : milliseconds{0});
  if (pause.count() > 0)
    paused_until_ = std::max(paused_until_, now + std::min(pause, longest_closure));
  if (limited && trying) { // it answers again
    failures_ = 0;
    opened_at_.reset();
  }
  if (limited || !moves)
    return;
  failures_ = std::min(failures_ + 1, breaker_failures);
  if (trying || failures_ >= breaker_failures)
    opened_at_ = now;
}

breaker_state governor_core::breaker(steady_time now) const {
  if (!opened_at_)
    return breaker_state::closed;
  return now - *opened_at_ < breaker_wait ? breaker_state::open : breaker_state::half_open;
}

std::optional<trouble> governor_core::closed_because(steady_time now) const {
  const auto name = "provider " + limits_.provider_id;
  const auto last = last_trouble_.empty() ? std::string{} : "; the last: " + last_trouble_;
  if (breaker(now) == breaker_state::open) {
    auto why = refusal(trouble_kind::unavailable, name + ": " + std::to_string(breaker_failures) +
                                                      " failures in a row, calls wait" + last);
    why.retry_after = *opened_at_ + breaker_wait - now;
    return why;
  }
  if (paused_until_ > now && paused_until_ - now > longest_pause) {
    auto why = refusal(trouble_kind::rate_limited, name + " asks for a pause of " +
                                                       format_duration(paused_until_ - now) + last);
    why.retry_after = paused_until_ - now;
    return why;
  }
  return std::nullopt;
}

void governor_core::refuse_waiting(const trouble& why, std::vector<decision>& out) {
  while (auto next = take_next())
    out.push_back({next->ticket, false, why});
}

/// The next call in turn; its agent goes to the end of the line.
std::optional<governor_core::call> governor_core::take_next() {
  if (turn_.empty())
    return std::nullopt;
  const auto agent = std::move(turn_.front());
  turn_.pop_front();
  const auto queue = waiting_.find(agent);
  const call next = queue->second.front();
  queue->second.pop_front();
  if (queue->second.empty())
    waiting_.erase(queue);
  else
    turn_.push_back(agent);
  agent_of_.erase(next.ticket);
  --waiting_count_;
  return next;
}

bool governor_core::fits(const call& next) const {
  const bool request = limits_.requests_per_minute <= 0 || requests_left_ + grain >= 1;
  const auto most = static_cast<double>(limits_.tokens_per_minute);
  const bool tokens = limits_.tokens_per_minute <= 0 ||
                      tokens_left_ + grain >= std::min(static_cast<double>(next.tokens), most);
  return request && tokens;
}

std::vector<governor_core::decision> governor_core::decide(steady_time now) {
  fill(now);
  auto out = std::exchange(refused_, {});
  if (const auto why = closed_because(now)) {
    refuse_waiting(*why, out);
    return out;
  }
  while (!turn_.empty() && static_cast<std::int64_t>(granted_.size()) < places() &&
         paused_until_ <= now && !(opened_at_ && trying_) &&
         fits(waiting_.at(turn_.front()).front())) {
    const auto next = take_next();
    const bool trying = opened_at_.has_value();
    trying_ = trying;
    granted_.emplace(next->ticket, held{next->tokens, trying});
    if (limits_.requests_per_minute > 0)
      requests_left_ -= 1;
    if (limits_.tokens_per_minute > 0)
      tokens_left_ -= static_cast<double>(next->tokens);
    out.push_back({next->ticket, true, std::nullopt});
  }
  return out;
}

std::optional<steady_time> governor_core::next_look() const {
  if (!refused_.empty())
    return filled_at_;
  if (turn_.empty() || static_cast<std::int64_t>(granted_.size()) >= places() ||
      (opened_at_ && trying_) || !filled_at_)
    return std::nullopt;
  auto when = std::max(*filled_at_, paused_until_);
  const auto& next = waiting_.at(turn_.front()).front();
  if (limits_.requests_per_minute > 0 && requests_left_ + grain < 1)
    when =
        std::max(when, *filled_at_ + time_to_fill(1 - requests_left_, limits_.requests_per_minute));
  if (limits_.tokens_per_minute > 0) {
    const auto most = static_cast<double>(limits_.tokens_per_minute);
    const double need = std::min(static_cast<double>(next.tokens), most);
    if (tokens_left_ + grain < need)
      when = std::max(when, *filled_at_ + time_to_fill(need - tokens_left_, most));
  }
  return when;
}

} // namespace boyd::model
