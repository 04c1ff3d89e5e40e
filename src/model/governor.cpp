#include "boyd/model/governor.hpp"

#include "boyd/core/invariant.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace boyd::model {
namespace {

constexpr double ms_per_minute = 60'000;
/// Sums of fractions are compared with this much grace.
constexpr double grain = 1e-6;
/// What a new count weighs beside those before it.
constexpr double newest_weight = 0.3;
/// As every trouble's text.
constexpr std::size_t refusal_characters = 500;

bool counts(trouble_kind k) {
  return k == trouble_kind::unavailable || k == trouble_kind::overloaded;
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
  // Under a much smaller limit that would be the work of hours: a minute is enough.
  const auto of_a_minute = [](double left, double limit) {
    return limit <= 0 ? 0 : std::max(left, -limit);
  };
  requests_left_ = of_a_minute(requests_left_, limits_.requests_per_minute);
  tokens_left_ = of_a_minute(tokens_left_, static_cast<double>(limits_.tokens_per_minute));
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
                        steady_time now, const std::string& model) {
  if (ticket == 0 || agent_of_.count(ticket) != 0 || granted_.count(ticket) != 0)
    return;
  fill(now);
  if (waiting_count_ >= governor_queue) {
    auto why = refusal(trouble_kind::overloaded, "provider " + limits_.provider_id + ": " +
                                                     std::to_string(governor_queue) +
                                                     " calls are already waiting");
    why.retry_after = rate_limit_pause;
    refused_.push_back({ticket, false, std::move(why)});
    return;
  }
  if (const auto bad = nonsense_.find(agent);
      bad != nonsense_.end() && now < bad->second.closed_until) {
    auto why = refusal(trouble_kind::bad_answer,
                       "provider " + limits_.provider_id + ": the last " +
                           std::to_string(bad->second.answers) + " answers to " + agent +
                           " were unreadable, so its calls wait; the last: " + bad->second.last);
    why.retry_after = bad->second.closed_until - now;
    refused_.push_back({ticket, false, std::move(why)});
    return;
  }
  auto& queue = waiting_[agent];
  if (queue.empty())
    turn_.push_back(agent);
  queue.push_back({ticket, std::max<std::int64_t>(tokens, 0), model});
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
  if (place != granted_.end())
    free_place(place);
}

void governor_core::free_place(std::map<ticket_id, held>::iterator place) {
  const auto& had = place->second;
  if (const auto c = circuits_.find(had.model); had.trying && c != circuits_.end())
    c->second.trying = false;
  const auto count = holds_.find(had.agent);
  invariant(count != holds_.end() && count->second > 0, "governor: a held place is counted");
  if (--count->second == 0)
    holds_.erase(count);
  granted_.erase(place);
}

void governor_core::done(ticket_id ticket, std::int64_t used, const std::optional<trouble>& t,
                         steady_time now, const std::optional<input_count>& counted) {
  const auto place = granted_.find(ticket);
  if (place == granted_.end())
    return;
  fill(now);
  const held had = place->second;
  free_place(place);
  if (limits_.tokens_per_minute > 0) {
    const auto more = static_cast<double>(std::max<std::int64_t>(used, 0) - had.tokens);
    const auto most = static_cast<double>(limits_.tokens_per_minute);
    tokens_left_ = std::clamp(tokens_left_ - more, std::min(tokens_left_, -most), most);
  }
  if (counted)
    note_count(had.model, *counted);
  learn_nonsense(had.agent, t, now);
  learn(had.model, t, had.trying, now);
}

void governor_core::note_count(const std::string& model, const input_count& count) {
  if (count.estimated <= 0 || count.counted <= 0)
    return;
  const auto ratio =
      std::clamp(static_cast<double>(count.counted) / static_cast<double>(count.estimated),
                 least_ratio, most_ratio);
  if (const auto known = ratios_.find(model); known != ratios_.end())
    known->second += newest_weight * (ratio - known->second);
  else if (ratios_.size() < counted_models)
    ratios_.emplace(model, ratio);
}

double governor_core::input_ratio(const std::string& model) const {
  const auto known = ratios_.find(model);
  return known == ratios_.end() ? 1 : known->second;
}

void governor_core::learn_nonsense(const std::string& agent, const std::optional<trouble>& t,
                                   steady_time now) {
  if (!t) {
    nonsense_.erase(agent);
    return;
  }
  if (t->kind != trouble_kind::bad_answer ||
      (nonsense_.size() >= counted_agents && nonsense_.count(agent) == 0))
    return;
  auto& bad = nonsense_[agent];
  bad.answers = std::min(bad.answers + 1, breaker_failures);
  bad.last = t->what;
  if (bad.answers >= breaker_failures)
    bad.closed_until = now + breaker_wait;
}

void governor_core::learn(const std::string& model, const std::optional<trouble>& t, bool trying,
                          steady_time now) {
  const auto known = circuits_.find(model);
  const bool moves = trying || known == circuits_.end() || !known->second.opened_at;
  if (t && t->kind == trouble_kind::cancelled)
    return;
  last_trouble_ = t ? t->what : std::string{};
  if (t && t->kind == trouble_kind::bad_answer) {
    if (trying) // not the good answer that would close it
      circuits_[model].opened_at = now;
    return;
  }
  const bool limited = t && t->kind == trouble_kind::rate_limited;
  if (!t || !(counts(t->kind) || limited)) {
    if (moves)
      circuits_.erase(model);
    return;
  }
  const auto pause = t->retry_after.value_or(limited ? rate_limit_pause : milliseconds{0});
  if (pause.count() > 0) {
    std::erase_if(pauses_, [&](const auto& p) { return p.second.until <= now; });
    if (auto& p = pauses_[model]; p.until < now + std::min(pause, longest_closure))
      p = {now + std::min(pause, longest_closure), t->what};
  }
  if (limited && trying) // it answers again
    circuits_.erase(model);
  if (limited || !moves)
    return;
  auto& c = circuits_[model];
  c.last = t->what;
  c.failures = std::min(c.failures + 1, breaker_failures);
  if (trying || c.failures >= breaker_failures)
    c.opened_at = now;
}

std::vector<governor_core::open_model> governor_core::open_models(steady_time now) const {
  std::vector<open_model> out;
  for (const auto& [model, c] : circuits_)
    if (c.opened_at)
      out.push_back(
          {model,
           now - *c.opened_at < breaker_wait ? breaker_state::open : breaker_state::half_open,
           c.last});
  return out;
}

breaker_state governor_core::breaker(steady_time now) const {
  auto worst = breaker_state::closed;
  for (const auto& m : open_models(now))
    if (worst != breaker_state::open)
      worst = m.state;
  return worst;
}

std::string governor_core::last_trouble() const {
  const auto closed =
      std::ranges::find_if(circuits_, [](const auto& c) { return c.second.opened_at.has_value(); });
  if (closed == circuits_.end())
    return last_trouble_;
  return closed->first.empty() ? closed->second.last : closed->first + ": " + closed->second.last;
}

std::optional<trouble> governor_core::closed_because(const std::string& model,
                                                     steady_time now) const {
  const auto& c = circuits_.at(model);
  if (!c.opened_at || now - *c.opened_at >= breaker_wait)
    return std::nullopt;
  auto why =
      refusal(trouble_kind::unavailable,
              "provider " + limits_.provider_id + (model.empty() ? "" : ", " + model) + ": " +
                  std::to_string(breaker_failures) + " failures in a row, so calls wait" +
                  (c.last.empty() ? "" : "; the last: ") + c.last);
  why.retry_after = *c.opened_at + breaker_wait - now;
  return why;
}

std::optional<trouble> governor_core::pause_because(const std::string& model,
                                                    steady_time now) const {
  const auto& p = pauses_.at(model);
  if (p.until <= now || p.until - now <= longest_pause)
    return std::nullopt;
  auto why = refusal(trouble_kind::rate_limited,
                     "provider " + limits_.provider_id + (model.empty() ? "" : ", " + model) +
                         ": the provider asks for a pause of " + format_duration(p.until - now) +
                         (p.last.empty() ? "" : "; the last: ") + p.last);
  why.retry_after = p.until - now;
  return why;
}

/// Those who wait for a model that is closed, or that is to have a long pause.
void governor_core::refuse_closed(steady_time now, std::vector<decision>& out) {
  std::map<std::string, trouble> closed;
  for (const auto& [model, c] : circuits_)
    if (auto why = closed_because(model, now))
      closed.emplace(model, std::move(*why));
  for (const auto& [model, p] : pauses_)
    if (auto why = pause_because(model, now))
      closed.emplace(model, std::move(*why));
  if (closed.empty())
    return;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    std::erase_if(it->second, [&](const call& c) {
      const auto why = closed.find(c.model);
      if (why == closed.end())
        return false;
      out.push_back({c.ticket, false, why->second});
      agent_of_.erase(c.ticket);
      --waiting_count_;
      return true;
    });
    it = it->second.empty() ? waiting_.erase(it) : std::next(it);
  }
  std::erase_if(turn_, [&](const std::string& agent) { return waiting_.count(agent) == 0; });
}

/// In a pause, or while another call tries whether it is there again.
bool governor_core::has_to_wait(const std::string& model, steady_time now) const {
  const auto c = circuits_.find(model);
  const auto p = pauses_.find(model);
  return (c != circuits_.end() && c->second.opened_at && c->second.trying) ||
         (p != pauses_.end() && p->second.until > now);
}

/// When somebody who waits for the end of a pause need not wait any more, at the earliest.
std::optional<steady_time> governor_core::first_pause_over() const {
  std::optional<steady_time> first;
  for (const auto& [agent, queue] : waiting_)
    if (const auto p = pauses_.find(queue.front().model);
        p != pauses_.end() && p->second.until > *filled_at_ && (!first || p->second.until < *first))
      first = p->second.until;
  return first;
}

/// The agent whose next call is to have the next place; the end: nobody's.
governor_core::line::const_iterator governor_core::next_in_line(steady_time now) const {
  auto best = turn_.end();
  auto fewest = std::numeric_limits<std::size_t>::max();
  std::size_t compared = 0;
  for (auto it = turn_.begin(); it != turn_.end() && compared < compared_agents; ++it) {
    if (has_to_wait(waiting_.at(*it).front().model, now))
      continue;
    ++compared;
    const auto count = holds_.find(*it);
    const auto places_held = count == holds_.end() ? 0 : count->second;
    if (places_held >= fewest)
      continue;
    best = it;
    fewest = places_held;
    if (places_held == 0)
      break;
  }
  return best;
}

/// The agent's next call; the agent goes to the end of the line.
governor_core::call governor_core::take(line::const_iterator whose) {
  const auto agent = *whose;
  turn_.erase(whose);
  const auto queue = waiting_.find(agent);
  call next = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty())
    waiting_.erase(queue);
  else
    turn_.push_back(agent);
  agent_of_.erase(next.ticket);
  --waiting_count_;
  return next;
}

void governor_core::grant(line::const_iterator whose) {
  const auto agent = *whose;
  const auto next = take(whose);
  const auto c = circuits_.find(next.model);
  const bool trying = c != circuits_.end() && c->second.opened_at;
  if (trying)
    c->second.trying = true;
  granted_.emplace(next.ticket, held{agent, next.tokens, next.model, trying});
  ++holds_[agent];
  if (limits_.requests_per_minute > 0)
    requests_left_ -= 1;
  if (limits_.tokens_per_minute > 0)
    tokens_left_ -= static_cast<double>(next.tokens);
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
  refuse_closed(now, out);
  while (static_cast<std::int64_t>(granted_.size()) < places()) {
    const auto whose = next_in_line(now);
    if (whose == turn_.end() || !fits(waiting_.at(*whose).front()))
      break;
    const auto& next = waiting_.at(*whose).front();
    out.push_back({next.ticket, true, std::nullopt, input_ratio(next.model)});
    grant(whose);
  }
  invariant(waiting_count_ == agent_of_.size(), "governor: every waiting call has its agent");
  return out;
}

std::optional<steady_time> governor_core::next_look() const {
  if (!refused_.empty())
    return filled_at_;
  if (turn_.empty() || static_cast<std::int64_t>(granted_.size()) >= places() || !filled_at_)
    return std::nullopt;
  const auto over = first_pause_over();
  const auto whose = next_in_line(*filled_at_);
  if (whose == turn_.end())
    return over;
  auto when = *filled_at_;
  const auto& next = waiting_.at(*whose).front();
  if (limits_.requests_per_minute > 0 && requests_left_ + grain < 1)
    when =
        std::max(when, *filled_at_ + time_to_fill(1 - requests_left_, limits_.requests_per_minute));
  if (limits_.tokens_per_minute > 0) {
    const auto most = static_cast<double>(limits_.tokens_per_minute);
    const double need = std::min(static_cast<double>(next.tokens), most);
    if (tokens_left_ + grain < need)
      when = std::max(when, *filled_at_ + time_to_fill(need - tokens_left_, most));
  }
  return over ? std::min(when, *over) : when;
}

} // namespace boyd::model
