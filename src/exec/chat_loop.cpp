#include "boyd/exec/chat_loop.hpp"

#include "boyd/core/text.hpp"
#include "chat_record.hpp"
#include "json_text.hpp"
#include "schema_check.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::exec {

namespace {

/// More tool calls in one answer are answered without being run.
constexpr std::size_t calls_per_answer = 64;
/// With less left of its budget a run makes no further call.
constexpr std::int64_t least_output_tokens = 16;
/// A budget is warned of from this share on.
constexpr int warn_percent = 80;

constexpr std::array<std::string_view, 3> usual_fallbacks{"overloaded", "rate_limited",
                                                          "unavailable"};

bool leads_to(const chat_target& target, model::trouble_kind kind) {
  const auto name = model::name_of(kind);
  if (target.on.empty())
    return std::ranges::find(usual_fallbacks, name) != usual_fallbacks.end();
  return std::ranges::find(target.on, name) != target.on.end();
}

/// `*` stands for any run of characters.
bool matches(std::string_view pattern, std::string_view text) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern == text;
  if (!text.starts_with(pattern.substr(0, star)))
    return false;
  const auto rest = pattern.substr(star + 1);
  for (auto from = star; from <= text.size(); ++from)
    if (matches(rest, text.substr(from)))
      return true;
  return false;
}

bool is_near(std::int64_t used, std::int64_t limit) {
  return limit > 0 && static_cast<double>(used) * 100 >= static_cast<double>(limit) * warn_percent;
}

/// Of one figure of one call: more is no usage but a mistake of the provider's (queue/spend.hpp).
constexpr std::int64_t most_counted = 1'000'000'000'000;

std::int64_t counted(std::int64_t n) {
  return std::clamp<std::int64_t>(n, 0, most_counted);
}

/// Bytes of an answer that is bounded to so many tokens: events are much larger than their words.
std::size_t answer_bytes(std::int64_t output_tokens) {
  constexpr std::size_t per_token = 1024;
  constexpr std::size_t beside = 1u << 20;
  return beside + static_cast<std::size_t>(counted(output_tokens)) * per_token;
}

} // namespace

struct chat_loop::impl {
  enum class phase : std::uint8_t { fresh, placing, reserving, calling, waiting, acting, over };

  explicit impl(conversation all) : c(std::move(all)) {
    for (const auto& m : c.messages)
      input_tokens += model::estimate_tokens(m);
    input_tokens += model::estimate_tokens(c.tools_json) + model::estimate_tokens(c.schema_json);
  }

  conversation c;
  phase now = phase::fresh;
  std::size_t target = 0;
  std::uint64_t call = 0;
  int repeats = 0;
  bool repaired = false;
  model::chat_answer answer; ///< whose tools are run
  std::size_t next_tool = 0;
  judgement judged; ///< of the tool that runs
  std::uint64_t step = 0;
  chat_totals totals;
  std::int64_t input_tokens = 0;  ///< estimated, of all messages and tools
  std::int64_t output_tokens = 0; ///< that the present call may answer with
  std::unique_ptr<model::answer_reader> reader;
  bool heard = false; ///< the present call has an answer's head
  std::size_t progress = 0;
  std::set<std::string> acted;
  std::set<std::string> warned;
  chat_outcome out;

  const chat_target& at() const { return c.targets[target]; }
  std::string call_id() const {
    return c.dispatch_id + "/" + std::to_string(c.fence) + "/" + std::to_string(call);
  }
  model::usage expected() const { return {.input = input_tokens, .output = output_tokens}; }

  void say(model::message_json m) {
    input_tokens += model::estimate_tokens(m);
    c.messages.push_back(std::move(m));
  }

  chat_effects over(execution_verdict execution, failure_class failure, std::string error) {
    now = phase::over;
    out.execution = execution;
    out.failure = failure;
    out.error = std::move(error);
    return {effect::talk_over{}};
  }
  chat_effects failed(failure_class failure, std::string error) {
    return over(execution_verdict::failed, failure, std::move(error));
  }

  chat_effects start_call();
  std::string over_budget();
  std::string over_day(const store::reserve_spend::reply& r) const;
  chat_effects after_trouble(const model::trouble& t);
  chat_effects take(model::chat_answer a);
  chat_effects conclude(chat_effects before);
  chat_effects act();
  judgement judge(const model::tool_call& tool) const;
  chat_effects observe(const model::tool_call& tool, const std::string& text, bool is_error);
  void warn_of(chat_effects& effects, const std::string& scope, std::int64_t used,
               std::int64_t limit);
  effect::settle_spend settlement(const model::usage& used) const;
  model::usage guess(bool sent = false) const;
};

/// What a person needs to know of a day's budget that is closed.
std::string chat_loop::impl::over_day(const store::reserve_spend::reply& r) const {
  std::string why = "the day's budget of " + r.refused_scope + " does not allow another call";
  for (std::size_t i = 0; i < r.totals.size() && i < c.scopes.size(); ++i) {
    const auto& limit = c.scopes[i];
    if (limit.scope != r.refused_scope)
      continue;
    if (limit.tokens > 0)
      why += "; tokens: " + std::to_string(r.totals[i].tokens) + " of " +
             std::to_string(limit.tokens) + " are used, the call may take " +
             std::to_string(input_tokens + output_tokens);
    if (limit.cost > 0)
      why += "; cost: " + std::to_string(r.totals[i].cost) + " of " + std::to_string(limit.cost) +
             " millionths of a dollar";
  }
  return why + "; it begins anew at 00:00 UTC";
}

/// Why the run's own budget does not allow another call; empty: it does, and output_tokens is set.
std::string chat_loop::impl::over_budget() {
  const auto& b = c.budget;
  output_tokens = c.max_output_tokens > 0 ? c.max_output_tokens : assumed_output_tokens;
  if (b.turns > 0 && totals.turns >= b.turns)
    return "the run's budget of " + std::to_string(b.turns) + " turns is used up";
  if (b.tokens > 0) {
    const auto left = b.tokens - totals.used.input - totals.used.output - input_tokens;
    if (left < least_output_tokens)
      return "the run's budget of " + std::to_string(b.tokens) +
             " tokens does not allow another call (budget.run.tokens)";
    output_tokens = std::min(output_tokens, left);
  }
  if (b.cost > 0 && totals.cost + model::cost_of(at().provider, at().model, expected()) > b.cost)
    return "the run's budget of money does not allow another call (budget.run.cost)";
  return {};
}

chat_effects chat_loop::impl::start_call() {
  if (totals.turns >= c.max_turns)
    return failed(failure_class::deterministic,
                  "no final answer after " + std::to_string(c.max_turns) + " turns (max_turns)");
  if (auto why = over_budget(); !why.empty())
    return failed(failure_class::policy, std::move(why));
  std::size_t bytes = 0;
  for (const auto& m : c.messages)
    bytes += m.size();
  if (bytes > limits::prompt_bytes) {
    out.too_long = true;
    return failed(failure_class::transient, "the conversation is longer than " +
                                                std::to_string(limits::prompt_bytes >> 20) +
                                                " MiB");
  }
  now = phase::placing;
  ++call;
  return {effect::ask_place{call, at().provider.provider_id, input_tokens + output_tokens}};
}

void chat_loop::impl::warn_of(chat_effects& effects, const std::string& scope, std::int64_t used,
                              std::int64_t limit) {
  if (is_near(used, limit) && warned.insert(scope).second)
    effects.emplace_back(effect::warn{"the budget of " + scope + " is used up to " +
                                      std::to_string(used * 100 / limit) + " %"});
}

effect::settle_spend chat_loop::impl::settlement(const model::usage& used) const {
  return {{call_id(),
           {counted(used.input), counted(used.cached), counted(used.output),
            counted(used.reasoning), counted(model::cost_of(at().provider, at().model, used))}}};
}

/// What a call that has no usage of its own may have cost. `sent`: without an answer's head, too,
/// for the model may have worked all the same.
model::usage chat_loop::impl::guess(bool sent) const {
  if (!heard)
    return sent ? model::usage{.input = input_tokens} : model::usage{};
  return {.input = input_tokens, .output = static_cast<std::int64_t>(reader->progress()) / 4};
}

chat_effects chat_loop::impl::after_trouble(const model::trouble& t) {
  const auto& from = at();
  if (model::may_repeat(t) && repeats < from.provider.max_retries)
    if (const auto wait = model::wait_before_repeat(t, repeats, c.unit())) {
      ++repeats;
      now = phase::waiting;
      return {effect::note_turn{trouble_json(from, call, t, "again in " + format_duration(*wait))},
              effect::wait_repeat{call, *wait}};
    }
  for (auto next = target + 1; next < c.targets.size(); ++next) {
    if (!leads_to(c.targets[next], t.kind))
      continue;
    const auto where = c.targets[next].provider.provider_id + "/" + c.targets[next].model;
    chat_effects effects{effect::note_turn{trouble_json(from, call, t, where)},
                         effect::warn{from.provider.provider_id + " does not serve (" +
                                      std::string(model::name_of(t.kind)) + "); going on with " +
                                      where}};
    const bool stranger = c.targets[next].provider.provider_id != from.provider.provider_id;
    target = next;
    repeats = 0;
    if (stranger) // what only the other one understands is refused here
      for (auto& m : c.messages)
        m = model::portable_message(m);
    for (auto& e : start_call())
      effects.push_back(std::move(e));
    return effects;
  }
  chat_effects effects{effect::note_turn{trouble_json(from, call, t, "given up")}};
  out.too_long = t.kind == model::trouble_kind::too_long;
  for (auto& e :
       failed(model::class_of(t.kind), from.provider.provider_id + ": " +
                                           std::string(model::name_of(t.kind)) + ": " + t.what))
    effects.push_back(std::move(e));
  return effects;
}

/// An answer: its tools are run, or it is the last word.
chat_effects chat_loop::impl::take(model::chat_answer a) {
  repeats = 0;
  ++totals.turns;
  const auto cost = model::cost_of(at().provider, at().model, a.used);
  totals.used.input += a.used.input;
  totals.used.cached += a.used.cached;
  totals.used.output += a.used.output;
  totals.used.reasoning += a.used.reasoning;
  totals.cost += cost;
  chat_effects effects{effect::note_turn{answer_json(at(), a, totals.turns, cost)}};
  say(a.message);
  out.text = a.text;
  answer = std::move(a);
  warn_of(effects, "the run (tokens)", totals.used.input + totals.used.output, c.budget.tokens);
  warn_of(effects, "the run (cost)", totals.cost, c.budget.cost);
  if (answer.calls.empty())
    return conclude(std::move(effects));
  next_tool = 0;
  now = phase::acting;
  for (auto& e : act())
    effects.push_back(std::move(e));
  return effects;
}

chat_effects chat_loop::impl::conclude(chat_effects effects) {
  const auto add = [&](chat_effects more) {
    std::ranges::move(more, std::back_inserter(effects));
    return std::move(effects);
  };
  if (!answer.refusal.empty() || answer.stop == model::stop_reason::content_filter)
    return add(failed(failure_class::deterministic,
                      "the model declined: " + (answer.refusal.empty()
                                                    ? std::string("content filter")
                                                    : std::string(first_line(answer.refusal)))));
  if (answer.stop == model::stop_reason::length)
    return add(failed(failure_class::deterministic,
                      "the answer was cut at its limit of tokens (max_output_tokens, or the run's "
                      "budget)"));
  if (c.schema_json.empty())
    return add(over(execution_verdict::succeeded, failure_class::none, {}));
  const auto schema = parse_json(c.schema_json);
  const auto value = parse_json(answer.text);
  const auto finding = !schema  ? to_string(schema.error())
                       : !value ? "the answer is no JSON: " + to_string(value.error())
                                : schema_finding(*schema, *value);
  if (finding.empty())
    return add(over(execution_verdict::succeeded, failure_class::none, {}));
  if (repaired)
    return add(
        failed(failure_class::deterministic, "the answer does not follow the schema: " + finding));
  repaired = true;
  say(model::user_message("Your answer does not follow the JSON Schema: " + finding +
                          "\nAnswer again with JSON that does, and nothing else."));
  return add(start_call());
}

chat_effects chat_loop::impl::observe(const model::tool_call& tool, const std::string& text,
                                      bool is_error) {
  ++totals.tool_calls;
  if (judged.decision != config::policy_decision::allow)
    ++totals.denied;
  else if (!is_error)
    acted.insert(tool.name);
  say(model::tool_message(tool.id, text));
  progress += text.size() + 1;
  ++next_tool;
  return {effect::note_turn{result_json(tool, totals.turns, step, text, is_error)}};
}

judgement chat_loop::impl::judge(const model::tool_call& tool) const {
  if (next_tool >= calls_per_answer)
    return {config::policy_decision::deny,
            "more than " + std::to_string(calls_per_answer) + " tool calls in one answer"};
  if (answer.stop == model::stop_reason::length && next_tool + 1 == answer.calls.size())
    return {config::policy_decision::deny,
            "the answer was cut at its limit of tokens, so that these arguments may not be whole"};
  return c.judge(tool);
}

/// Runs the answer's tools one by one; those that may not be are answered at once. What was decided
/// is on record before anything happens.
chat_effects chat_loop::impl::act() {
  chat_effects effects;
  while (next_tool < answer.calls.size()) {
    const auto& tool = answer.calls[next_tool];
    ++step;
    judged = judge(tool);
    effects.emplace_back(effect::note_turn{action_json(tool, totals.turns, step, judged)});
    if (judged.decision == config::policy_decision::allow) {
      effects.emplace_back(effect::run_tool{step, tool});
      return effects;
    }
    if (judged.decision == config::policy_decision::ask) {
      effects.emplace_back(effect::ask_person{step, tool, judged.reason});
      return effects;
    }
    std::ranges::move(observe(tool, "denied: " + judged.reason, true), std::back_inserter(effects));
  }
  std::ranges::move(start_call(), std::back_inserter(effects));
  return effects;
}

chat_loop::chat_loop(conversation c) : impl_(std::make_unique<impl>(std::move(c))) {}
chat_loop::~chat_loop() = default;
chat_loop::chat_loop(chat_loop&&) noexcept = default;
chat_loop& chat_loop::operator=(chat_loop&&) noexcept = default;

chat_effects chat_loop::begin() {
  if (impl_->now != impl::phase::fresh)
    return {};
  chat_effects effects{effect::note_turn{beginning_json(impl_->c)}};
  for (auto& e : impl_->start_call())
    effects.push_back(std::move(e));
  return effects;
}

chat_effects chat_loop::on_place(std::uint64_t call, const std::optional<model::trouble>& why) {
  auto& s = *impl_;
  if (s.now != impl::phase::placing || call != s.call)
    return {};
  if (why)
    return s.after_trouble(*why);
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
  // Nothing was called: the provider's tokens of this minute go back with the place.
  model::trouble unused;
  unused.kind = model::trouble_kind::cancelled;
  const effect::leave_place back{call, s.at().provider.provider_id, 0, unused};
  chat_effects effects;
  // No call without its reservation: the budgets fail closed.
  if (!r || !r->granted) {
    effects.emplace_back(back);
    auto end = !r ? s.failed(failure_class::transient,
                             "the budgets cannot be read: " + to_string(r.error()))
                  : s.failed(failure_class::policy, s.over_day(*r));
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
  s.totals.provider_id = s.at().provider.provider_id;
  s.totals.model = s.at().model;
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
  const bool waited = !transport && transport.error().code == errc::timed_out;
  const auto used = answer != nullptr ? answer->used : s.guess(waited);
  s.progress += s.reader->progress() + 1;
  std::optional<model::trouble> trouble;
  if (answer == nullptr)
    trouble = std::get<model::trouble>(end);
  chat_effects effects{
      effect::leave_place{call, s.at().provider.provider_id, used.input + used.output, trouble},
      s.settlement(used)};
  s.reader.reset();
  if (trouble) {
    s.totals.used.input += used.input;
    s.totals.used.output += used.output;
    s.totals.cost += model::cost_of(s.at().provider, s.at().model, used);
  }
  auto more = trouble ? s.after_trouble(*trouble) : s.take(std::move(*answer));
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

chat_effects chat_loop::stop(const std::string& why) {
  auto& s = *impl_;
  const auto was = std::exchange(s.now, impl::phase::over);
  const auto& provider = s.at().provider.provider_id;
  chat_effects effects;
  switch (was) {
  case impl::phase::placing:
  case impl::phase::reserving:
    effects.emplace_back(effect::drop_place{s.call, provider});
    break;
  case impl::phase::calling: {
    const auto used = s.guess(true);
    s.totals.used.input += used.input;
    s.totals.used.output += used.output;
    s.totals.cost += model::cost_of(s.at().provider, s.at().model, used);
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

bool chat_loop::acted(std::string_view pattern) const {
  return std::ranges::any_of(
      impl_->acted, [&](const auto& name) { return pattern.empty() || matches(pattern, name); });
}

std::string chat_loop::usage_json() const {
  return usage_json_of(impl_->totals, impl_->c.context_level, impl_->out.too_long);
}

} // namespace boyd::exec
