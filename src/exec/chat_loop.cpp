#include "boyd/exec/chat_loop.hpp"

#include "chat_loop_impl.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace boyd::exec {

namespace {

/// Bytes of an answer that is bounded to so many tokens: events are much larger than their words.
std::size_t answer_bytes(std::int64_t output_tokens) {
  constexpr std::size_t per_token = 1024;
  constexpr std::size_t beside = 1u << 20;
  return beside + static_cast<std::size_t>(counted(output_tokens)) * per_token;
}

} // namespace

chat_loop::chat_loop(conversation c) : impl_(std::make_unique<impl>(std::move(c))) {}
chat_loop::~chat_loop() = default;
chat_loop::chat_loop(chat_loop&&) noexcept = default;
chat_loop& chat_loop::operator=(chat_loop&&) noexcept = default;

chat_effects chat_loop::begin() {
  if (impl_->now != impl::phase::fresh)
    return {};
  chat_effects effects{effect::note_turn{beginning_json(impl_->c)}};
  for (const auto& t : impl_->left_out) {
    effects.emplace_back(effect::note_turn{left_out_json(t, left_out_because(t))});
    effects.emplace_back(effect::warn{left_out_because(t)});
  }
  for (auto& e : impl_->start_call())
    effects.push_back(std::move(e));
  return effects;
}

chat_effects chat_loop::on_place(std::uint64_t call, const std::optional<model::trouble>& why,
                                 double input_ratio) {
  auto& s = *impl_;
  if (s.now != impl::phase::placing || call != s.call)
    return {};
  if (why)
    return s.after_trouble(*why, false);
  if (auto over = s.correct_estimate(input_ratio); !over.empty())
    return over;
  s.now = impl::phase::reserving;
  const auto most = s.expected();
  effect::reserve ask;
  ask.call = call;
  ask.what.call_id = s.call_id();
  ask.what.dispatch_id = s.c.dispatch_id;
  ask.what.kernel_id = s.c.kernel_id;
  ask.what.agent_id = s.c.agent_id;
  ask.what.provider_id = s.at().provider.provider_id;
  ask.what.model = s.at().model;
  ask.what.most = {most.input, 0, most.output, 0,
                   model::cost_of(s.at().provider, s.at().model, most)};
  ask.what.limits = s.c.scopes;
  return {std::move(ask)};
}

chat_effects chat_loop::on_reserved(std::uint64_t call,
                                    const result<store::reserve_spend::reply>& r) {
  auto& s = *impl_;
  if (s.now != impl::phase::reserving || call != s.call)
    return {};
  const auto back = s.unused_place();
  chat_effects effects;
  // No call without its reservation: the budgets fail closed.
  if (!r || !r->granted) {
    effects.emplace_back(back);
    if (!r) // it may stand all the same, or be made when the store is back
      effects.emplace_back(s.settlement({}));
    auto end = !r ? s.failed(failure_class::transient, chat_end::store,
                             "cannot read the budgets: " + to_string(r.error()))
                  : s.failed(failure_class::policy, chat_end::budget, s.over_day(*r));
    std::ranges::move(end, std::back_inserter(effects));
    return effects;
  }
  for (std::size_t i = 0; i < r->totals.size() && i < s.c.scopes.size(); ++i) {
    s.warn_of(effects, s.c.scopes[i].scope + " (tokens)", r->totals[i].tokens,
              s.c.scopes[i].tokens);
    s.warn_of(effects, s.c.scopes[i].scope + " (cost)", r->totals[i].cost, s.c.scopes[i].cost);
  }
  s.now = impl::phase::calling;
  s.heard = false;
  ++s.totals.calls;
  s.reader = std::make_unique<model::answer_reader>();
  model::chat_request q;
  q.model = s.at().model;
  q.messages = s.c.messages;
  q.tools_json = s.c.tools_json;
  q.schema_json = s.c.schema_json;
  q.temperature = s.c.temperature;
  q.max_output_tokens = s.output_tokens; // what was reserved, and no more
  auto request = model::make_request(s.at().provider, q, s.at().key);
  request.max_answer_bytes = std::min(request.max_answer_bytes, answer_bytes(s.output_tokens));
  effects.emplace_back(effect::call_model{call, std::move(request)});
  return effects;
}

void chat_loop::on_head(std::uint64_t call, const http_head& head) {
  auto& s = *impl_;
  if (s.now != impl::phase::calling || call != s.call)
    return;
  s.heard = head.status / 100 == 2;
  s.reader->on_head(head);
}

void chat_loop::on_body(std::uint64_t call, std::string_view bytes) {
  auto& s = *impl_;
  if (s.now == impl::phase::calling && call == s.call)
    s.reader->on_body(bytes);
}

chat_effects chat_loop::on_call_end(std::uint64_t call, const result<void>& transport) {
  auto& s = *impl_;
  if (s.now != impl::phase::calling || call != s.call)
    return {};
  auto end = s.reader->finish(transport);
  auto* answer = std::get_if<model::chat_answer>(&end);
  // A provider that reports nothing, or nonsense, does not switch the budgets off.
  if (answer != nullptr &&
      (!answer->used.reported || answer->used.input < 0 || answer->used.output < 0 ||
       answer->used.input + answer->used.output == 0))
    answer->used = s.guess();
  const auto excess = answer != nullptr ? s.cap(answer->used) : std::string();
  const bool waited = !transport && transport.error().code == errc::timed_out;
  const auto used = answer != nullptr ? answer->used : s.guess(waited);
  s.progress += s.reader->progress() + 1;
  std::optional<model::trouble> trouble;
  if (answer == nullptr)
    trouble = std::get<model::trouble>(end);
  effect::leave_place left{
      call, s.at().provider.provider_id, used.input + used.output, trouble, {}};
  if (auto count = answer != nullptr ? s.first_count(used.input) : std::nullopt;
      count && used.reported)
    left.counted = count;
  chat_effects effects{std::move(left), s.settlement(used)};
  if (!excess.empty())
    effects.emplace_back(effect::warn{excess});
  s.reader.reset();
  if (trouble)
    s.count(used);
  auto more = trouble ? s.after_trouble(*trouble, true) : s.take(std::move(*answer));
  std::ranges::move(more, std::back_inserter(effects));
  return effects;
}

chat_effects chat_loop::on_repeat(std::uint64_t call) {
  auto& s = *impl_;
  return s.now == impl::phase::waiting && call == s.call ? s.start_call() : chat_effects{};
}

chat_effects chat_loop::on_tool_result(std::uint64_t step, const std::string& text, bool is_error) {
  auto& s = *impl_;
  if (s.now != impl::phase::acting || step != s.step)
    return {};
  auto effects = s.observe(s.answer.calls[s.next_tool], text, is_error);
  std::ranges::move(s.act(), std::back_inserter(effects));
  return effects;
}

chat_effects chat_loop::on_approval(std::uint64_t step, bool approved, const std::string& reason) {
  auto& s = *impl_;
  if (s.now != impl::phase::acting || step != s.step ||
      s.judged.decision != config::policy_decision::ask)
    return {};
  s.judged.reason += s.judged.reason.empty() ? reason : "; " + reason;
  const auto& tool = s.answer.calls[s.next_tool];
  s.judged.decision = approved ? config::policy_decision::allow : config::policy_decision::deny;
  chat_effects effects{effect::note_turn{action_json(tool, s.totals.turns, step, s.judged)}};
  if (approved) {
    effects.emplace_back(effect::run_tool{step, tool});
    return effects;
  }
  std::ranges::move(s.observe(tool, "denied: " + reason, true), std::back_inserter(effects));
  std::ranges::move(s.act(), std::back_inserter(effects));
  return effects;
}

chat_effects chat_loop::on_no_approval(std::uint64_t step, const std::string& reason) {
  auto& s = *impl_;
  if (s.now != impl::phase::acting || step != s.step ||
      s.judged.decision != config::policy_decision::ask)
    return {};
  s.judged.reason += s.judged.reason.empty() ? reason : "; " + reason;
  chat_effects effects{
      effect::note_turn{action_json(s.answer.calls[s.next_tool], s.totals.turns, step, s.judged)}};
  std::ranges::move(s.failed(failure_class::policy, chat_end::unapproved, reason),
                    std::back_inserter(effects));
  return effects;
}

chat_effects chat_loop::stop(const std::string& why) {
  auto& s = *impl_;
  const auto was = std::exchange(s.now, impl::phase::over);
  const auto& provider = s.at().provider.provider_id;
  chat_effects effects;
  switch (was) {
  case impl::phase::placing:
    effects.emplace_back(effect::drop_place{s.call, provider});
    break;
  case impl::phase::reserving:
    effects.emplace_back(effect::drop_place{s.call, provider});
    effects.emplace_back(s.settlement({})); // nobody hears whether it was made
    break;
  case impl::phase::calling: {
    const auto used = s.guess(true);
    s.count(used);
    s.out.text = s.reader->text();
    effects.emplace_back(effect::cancel_call{s.call});
    effects.emplace_back(effect::drop_place{s.call, provider});
    effects.emplace_back(s.settlement(used));
    break;
  }
  case impl::phase::acting:
    effects.emplace_back(effect::stop_step{s.step});
    break;
  case impl::phase::over:
    return {};
  case impl::phase::fresh:
  case impl::phase::waiting:
    break;
  }
  effects.emplace_back(effect::note_turn{dump({{"event", "stopped"}, {"why", why}})});
  return effects;
}

bool chat_loop::over() const {
  return impl_->now == impl::phase::over;
}

const chat_outcome& chat_loop::outcome() const {
  return impl_->out;
}

std::size_t chat_loop::progress() const {
  return impl_->progress + (impl_->reader ? impl_->reader->progress() : 0);
}

bool chat_loop::waits_for_others() const {
  return impl_->now != impl::phase::calling && impl_->now != impl::phase::over;
}

bool chat_loop::waits_for_place() const {
  return impl_->now == impl::phase::placing;
}

std::string chat_loop::doing() const {
  const auto& s = *impl_;
  const auto where = s.at().model + " at provider " + s.at().provider.provider_id;
  switch (s.now) {
  case impl::phase::placing:
    return "waiting for provider " + s.at().provider.provider_id;
  case impl::phase::reserving:
    return "waiting for the budgets";
  case impl::phase::calling:
    return (s.heard ? "in an answer of " : "waiting for an answer from ") + where;
  case impl::phase::waiting:
    return "waiting to call " + where + " again";
  case impl::phase::acting: {
    const auto& tool = s.answer.calls[s.next_tool].name;
    return s.judged.decision == config::policy_decision::ask ? "no approval yet for " + tool
                                                             : "in the tool " + tool;
  }
  case impl::phase::fresh:
  case impl::phase::over:
    break;
  }
  return {};
}

bool chat_loop::acted() const {
  return impl_->acted;
}

run_usage chat_loop::usage() const {
  const auto& t = impl_->totals;
  run_usage u{.provider = t.provider_id,
              .model = t.model,
              .calls = t.calls,
              .turns = t.turns,
              .tool_calls = t.tool_calls,
              .denied = t.denied,
              .input_tokens = t.used.input,
              .cached_tokens = t.used.cached,
              .output_tokens = t.used.output,
              .reasoning_tokens = t.used.reasoning,
              .cost_microusd = t.cost,
              .context = impl_->c.context_level,
              .too_long = impl_->out.too_long};
  if (t.retry_after)
    u.retry_after_ms = t.retry_after->count();
  return u;
}

} // namespace boyd::exec
