#include "boyd/core/limits.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/model/bounded_message.hpp"
#include "boyd/tools/call.hpp"
#include "chat_loop_impl.hpp"
#include "json_text.hpp"
#include "schema_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

/// What a conversation does next: calls, troubles, answers, tools.
namespace boyd::exec {

namespace {

/// More tool calls in one answer are answered without being run.
constexpr std::size_t calls_per_answer = 64;
/// With less left of its budget a run makes no further call.
constexpr std::int64_t least_output_tokens = 16;
bool has_long_arguments(const model::tool_call& call) {
  return call.arguments.size() > tools::argument_bytes;
}

constexpr std::array<std::string_view, 3> usual_fallbacks{"overloaded", "rate_limited",
                                                          "unavailable"};

bool leads_to(const chat_target& target, model::trouble_kind kind) {
  const auto name = model::name_of(kind);
  if (target.on.empty())
    return std::ranges::find(usual_fallbacks, name) != usual_fallbacks.end();
  return std::ranges::find(target.on, name) != target.on.end();
}

/// What a person does next about an endpoint that did not serve: of a request that was wrong, too
/// long or refused the endpoint is not the cause.
std::string next_after(model::trouble_kind kind, const std::string& provider_id) {
  switch (kind) {
  case model::trouble_kind::unavailable:
  case model::trouble_kind::overloaded:
  case model::trouble_kind::quota:
  case model::trouble_kind::unauthorized:
  case model::trouble_kind::not_found:
  case model::trouble_kind::bad_answer:
    return "; test it with: boyd doctor --provider " + provider_id;
  default:
    return {};
  }
}

bool is_near(std::int64_t used, std::int64_t limit) {
  return limit > 0 &&
         static_cast<double>(used) * 100 >= static_cast<double>(limit) * limits::budget_warning;
}

/// Of one figure of one call: more is no usage but a mistake of the provider's (queue/spend.hpp).
constexpr std::int64_t most_counted = 1'000'000'000'000;

} // namespace

std::int64_t counted(std::int64_t n) {
  return std::clamp<std::int64_t>(n, 0, most_counted);
}

std::string left_out_because(const chat_target& t) {
  return "fallback " + t.provider.provider_id + "/" + t.model +
         " was skipped: it does not support tools, which this run needs";
}

chat_loop::impl::impl(conversation all) : c(std::move(all)) {
  for (const auto& m : c.messages)
    input_tokens += model::estimate_tokens(m);
  input_tokens += model::estimate_tokens(c.tools_json) + model::estimate_tokens(c.schema_json);
  estimated_input = input_tokens;
  // Without its tools a model would answer all the same, and the run would be done.
  if (c.tools_json.empty())
    return;
  const auto unfit =
      std::stable_partition(c.targets.begin() + 1, c.targets.end(),
                            [](const chat_target& t) { return t.provider.capabilities.tools; });
  left_out.assign(std::make_move_iterator(unfit), std::make_move_iterator(c.targets.end()));
  c.targets.erase(unfit, c.targets.end());
}

chat_effects chat_loop::impl::correct_estimate(double input_ratio) {
  if (estimated_input == 0 || totals.turns > 0)
    return {};
  input_tokens = counted(std::llround(static_cast<double>(estimated_input) * input_ratio));
  auto why = over_budget();
  if (why.empty())
    return {};
  chat_effects effects{unused_place()};
  std::ranges::move(failed(failure_class::policy, chat_end::budget, std::move(why)),
                    std::back_inserter(effects));
  return effects;
}

std::optional<model::input_count> chat_loop::impl::first_count(std::int64_t counted_input) {
  const auto estimated = std::exchange(estimated_input, 0);
  return estimated > 0 ? std::optional(model::input_count{estimated, counted_input}) : std::nullopt;
}

effect::leave_place chat_loop::impl::unused_place() const {
  model::trouble unused;
  unused.kind = model::trouble_kind::cancelled;
  return {call, at().provider.provider_id, 0, unused, {}};
}

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
  return why + "; it resets at 00:00 UTC";
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
    return failed(failure_class::deterministic, chat_end::bad_answer,
                  "no final answer after " + std::to_string(c.max_turns) + " turns (max_turns)");
  if (auto why = over_budget(); !why.empty())
    return failed(failure_class::policy, chat_end::budget, std::move(why));
  std::size_t bytes = 0;
  for (const auto& m : c.messages)
    bytes += m.size();
  if (bytes > limits::prompt_bytes) {
    out.too_long = true;
    out.trouble = model::trouble_kind::too_long;
    return failed(failure_class::transient, chat_end::trouble,
                  "the conversation is longer than " + std::to_string(limits::prompt_bytes >> 20) +
                      " MiB");
  }
  now = phase::placing;
  ++call;
  totals.provider_id = at().provider.provider_id;
  totals.model = at().model;
  return {effect::ask_place{call, at().provider.provider_id, input_tokens + output_tokens,
                            at().model, totals.turns + 1}};
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

std::string chat_loop::impl::cap(model::usage& used) const {
  std::size_t bytes = c.tools_json.size() + c.schema_json.size();
  for (const auto& m : c.messages)
    bytes += m.size();
  return model::cap_usage(used, bytes, c.max_output_tokens > 0 ? output_tokens : 0);
}

std::int64_t chat_loop::impl::count(const model::usage& used) {
  const auto cost = model::cost_of(at().provider, at().model, used);
  totals.used.input += used.input;
  totals.used.cached += used.cached;
  totals.used.output += used.output;
  totals.used.reasoning += used.reasoning;
  totals.cost += cost;
  return cost;
}

chat_effects chat_loop::impl::after_trouble(const model::trouble& t, bool placed) {
  const auto next = next_target(t.kind);
  // A place that is refused will be for a while: who may go elsewhere does not wait for it.
  const bool may_wait = placed || (!next && c.waits_for_provider);
  if (may_wait && model::may_repeat(t) && repeats < at().provider.max_retries)
    if (const auto wait = model::wait_before_repeat(t, repeats, c.unit())) {
      ++repeats;
      now = phase::waiting;
      return {effect::note_turn{trouble_json(at(), call, t, "again in " + format_duration(*wait))},
              effect::wait_repeat{call, *wait}};
    }
  return next ? go_to(*next, t) : give_up(t, placed);
}

std::optional<std::size_t> chat_loop::impl::next_target(model::trouble_kind kind) const {
  for (auto next = target + 1; next < c.targets.size(); ++next)
    if (leads_to(c.targets[next], kind))
      return next;
  return std::nullopt;
}

chat_effects chat_loop::impl::go_to(std::size_t next, const model::trouble& t) {
  const auto& from = at().provider.provider_id;
  const auto where = c.targets[next].provider.provider_id + "/" + c.targets[next].model;
  chat_effects effects{effect::note_turn{trouble_json(at(), call, t, where)},
                       effect::warn{from + " is not available (" +
                                    std::string(model::name_of(t.kind)) + "); continuing with " +
                                    where}};
  const bool stranger = c.targets[next].provider.provider_id != from;
  target = next;
  repeats = 0;
  if (stranger) // what only the other one understands is refused here
    for (auto& m : c.messages)
      m = model::portable_message(m);
  for (auto& e : start_call())
    effects.push_back(std::move(e));
  return effects;
}

chat_effects chat_loop::impl::give_up(const model::trouble& t, bool placed) {
  const auto& id = at().provider.provider_id;
  chat_effects effects{effect::note_turn{trouble_json(at(), call, t, "given up")}};
  out.too_long = t.kind == model::trouble_kind::too_long;
  out.trouble = t.kind;
  totals.retry_after = t.retry_after;
  auto why =
      id + ": " + std::string(model::name_of(t.kind)) + ": " + t.what + next_after(t.kind, id);
  for (const auto& other : left_out)
    why += "; " + left_out_because(other);
  const auto end = placed ? chat_end::trouble : chat_end::no_place;
  for (auto& e : failed(model::class_of(t.kind), end, std::move(why)))
    effects.push_back(std::move(e));
  return effects;
}

/// An answer: its tools are run, or it is the last word.
chat_effects chat_loop::impl::take(model::chat_answer a) {
  repeats = 0;
  ++totals.turns;
  const auto cost = count(a.used);
  chat_effects effects{effect::note_turn{answer_json(at(), a, totals.turns, cost)}};
  input_tokens = std::max(input_tokens, counted(a.used.input));
  // What was too long to be taken does not go back: it would cost its tokens with every call.
  const bool too_long = std::ranges::any_of(a.calls, has_long_arguments);
  say(too_long ? model::without_long_arguments(a.message, tools::argument_bytes) : a.message);
  out.text = a.text;
  answer = std::move(a);
  warn_of(effects, "the run (tokens)", totals.used.input + totals.used.output, c.budget.tokens);
  warn_of(effects, "the run (cost)", totals.cost, c.budget.cost);
  warn_of(effects, "the run (turns)", totals.turns, c.budget.turns);
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
    return add(failed(failure_class::deterministic, chat_end::refusal,
                      "the model declined: " + (answer.refusal.empty()
                                                    ? std::string("content filter")
                                                    : std::string(first_line(answer.refusal)))));
  if (answer.stop == model::stop_reason::length)
    return add(failed(failure_class::deterministic, chat_end::bad_answer, cut_at()));
  if (trim(answer.text).empty())
    return add(ask_anew("is empty", "Your answer was empty. Give your final answer as text."));
  if (answer.stop == model::stop_reason::tool_calls)
    return add(ask_anew("announces a tool call and has none",
                        "Your answer ended with a tool call, but contained none. Call the tool, or "
                        "give your final answer as text."));
  if (!c.tools_json.empty() && tools::looks_like_call(answer.text))
    return add(ask_anew("is a tool call written as text",
                        "You wrote a tool call as text, so nothing was called. Call the tool as a "
                        "function, or give your final answer as text."));
  if (c.schema_json.empty())
    return add(answered());
  const auto schema = parse_json(c.schema_json);
  const auto found = find_json(answer.text);
  const auto finding = !schema  ? to_string(schema.error())
                       : !found ? "the answer is not JSON: " + found.error().what
                                : schema_finding(*schema, nlohmann::json::parse(found->text));
  if (finding.empty()) {
    out.text = found->text;
    return add(answered());
  }
  if (repaired)
    return add(failed(failure_class::deterministic, chat_end::bad_answer,
                      "the answer does not follow the schema: " + finding));
  repaired = true;
  say(model::user_message("Your answer does not follow the JSON Schema: " + finding +
                          "\nAnswer again with JSON that does, and nothing else."));
  return add(start_call());
}

chat_effects chat_loop::impl::answered() {
  // Also what stands beside an answer by a schema.
  const auto what = c.correct && !corrected ? c.correct(answer.text) : std::string();
  if (what.empty())
    return over(execution_verdict::succeeded, failure_class::none, chat_end::answered, {});
  corrected = true;
  sound = out.text;
  say(model::user_message(what));
  return start_call();
}

chat_effects chat_loop::impl::failed(failure_class failure, chat_end end, std::string error) {
  if (!sound)
    return over(execution_verdict::failed, failure, end, std::move(error));
  out.text = *sound;
  out.too_long = false;
  out.trouble.reset();
  totals.retry_after.reset();
  chat_effects effects{
      effect::note_turn{dump({{"event", "kept"}, {"why", "no corrected answer: " + error}})}};
  std::ranges::move(over(execution_verdict::succeeded, failure_class::none, chat_end::answered, {}),
                    std::back_inserter(effects));
  return effects;
}

std::string chat_loop::impl::cut_at() const {
  const bool by_budget =
      output_tokens < (c.max_output_tokens > 0 ? c.max_output_tokens : assumed_output_tokens);
  return "the answer reached its token limit and was cut off, " + std::to_string(output_tokens) +
         " (" +
         (by_budget                 ? "the rest of budget.run.tokens"
          : c.max_output_tokens > 0 ? "max_output_tokens"
                                    : "max_output_tokens is not set") +
         "), or at the model's own";
}

/// Asks once more for an answer that is none. What is empty is not sent back: some providers refuse
/// it.
chat_effects chat_loop::impl::ask_anew(std::string_view problem, std::string_view advice) {
  if (asked_anew)
    return failed(failure_class::transient, chat_end::bad_answer,
                  "the model's answer " + std::string(problem) + ", even after another request");
  asked_anew = true;
  if (trim(answer.text).empty())
    c.messages.pop_back();
  say(model::user_message(std::string(advice)));
  return start_call();
}

chat_effects chat_loop::impl::observe(const model::tool_call& tool, const std::string& text,
                                      bool is_error) {
  ++totals.tool_calls;
  if (judged.decision != config::policy_decision::allow)
    ++totals.denied;
  else if (!is_error)
    acted = true;
  say(model::tool_message(tool.id, text));
  progress += text.size() + 1;
  ++next_tool;
  return {effect::note_turn{result_json(tool, totals.turns, step, text, is_error)}};
}

judgement chat_loop::impl::judge(const model::tool_call& tool) const {
  if (has_long_arguments(tool))
    return {config::policy_decision::deny,
            "the arguments have " + std::to_string(tool.arguments.size()) + " bytes; at most " +
                std::to_string(tools::argument_bytes) +
                " are allowed: use smaller pieces, or a command"};
  if (next_tool >= calls_per_answer)
    return {config::policy_decision::deny,
            "more than " + std::to_string(calls_per_answer) + " tool calls in one answer"};
  if (answer.stop == model::stop_reason::length && next_tool + 1 == answer.calls.size())
    return {
        config::policy_decision::deny,
        "the answer reached its token limit and was cut off, so these arguments may be incomplete"};
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

} // namespace boyd::exec
