#include "actors/gateway/conversing.hpp"
#include "actors/gateway/explain.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/money.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/record/drift.hpp"
#include "boyd/record/replay.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A run of a model once more, on what is on record: how far its answer drifts.
namespace boyd::gateway_impl {

namespace {

/// For the whole conversation.
constexpr milliseconds longest_conversation = 10min;
constexpr milliseconds record_time = 2min;
constexpr double kept_digits = 1e4;

/// The run as it was, and as it goes this time.
struct second_run {
  record::execution execution;
  record::attempt attempt; ///< the last one
  std::string system;
  std::string tools;
  std::string prompt;
  record::came_to before;
  record::came_to now;
  std::optional<record::recorded_tools> recorded;
  std::string provider;
  std::string model;
};

using run_ptr = std::shared_ptr<second_run>;

std::string setting(const json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>()
                                                                     : std::string();
}

std::int64_t number_setting(const json& object, const char* key, std::int64_t standard) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_number_integer()
             ? it->get<std::int64_t>()
             : standard;
}

/// Takes the texts of the last attempt; an error says which one is not there.
result<void> take_texts(second_run& run, const record::replay_report& r) {
  const auto where = run.execution.dispatch_id;
  const auto next = "see what is missing: boyd replay " + where + " --diff";
  bool has_prompt = false;
  bool has_answer = false;
  for (const auto& t : r.texts) {
    if (t.fence != run.attempt.fence)
      continue;
    if (!t.same)
      return fail(errc::corrupt, "the " + t.name + " of the run cannot be rebuilt", where, next);
    has_prompt = has_prompt || t.name == "prompt";
    has_answer = has_answer || t.name == "answer";
    (t.name == "prompt"   ? run.prompt
     : t.name == "answer" ? run.before.conclusion
     : t.name == "tools"  ? run.tools
                          : run.system) = t.text;
  }
  if (!has_prompt || !has_answer)
    return fail(errc::refused, "the record has no answer to compare", where,
                "only finished runs of chat agents and agent CLIs have a recorded answer");
  return {};
}

/// Who is asked this time: an error names what is wrong with the request.
result<std::vector<exec::chat_target>> targets_of(const exchange& x, second_run& run,
                                                  const json& body) {
  const auto settings = json::parse(run.attempt.executor, nullptr, false);
  const bool is_chat = setting(settings, "kind") == "chat";
  const auto executor = setting(body, "executor");
  run.provider = !executor.empty() ? executor : is_chat ? setting(settings, "provider") : "";
  run.model = setting(body, "model");
  if (run.provider.empty()) {
    std::string known;
    for (const auto& p : x.configuration->providers)
      known += (known.empty() ? "" : ", ") + p.provider_id;
    return fail(errc::invalid_argument, "the run did not use a model of a provider",
                run.execution.dispatch_id,
                "choose a provider: --executor PROVIDER" +
                    (known.empty() ? std::string() : "; available: " + known));
  }
  if (run.model.empty() && executor.empty())
    run.model = setting(settings, "model");
  auto targets = exec::chat_targets(*x.configuration, run.provider, run.model, {});
  if (!targets)
    return targets;
  run.model = targets->front().model;
  if (!run.tools.empty() && run.tools != "[]" && !targets->front().provider.capabilities.tools)
    return fail(errc::refused, run.model + " does not support tools, but the run used tools",
                "provider " + run.provider, "use another model: --model NAME");
  return targets;
}

exec::conversation conversation_of(const exchange_ptr& x, const second_run& run) {
  const auto& e = run.execution;
  const auto& parts = x->self->state.parts;
  const auto settings = json::parse(run.attempt.executor, nullptr, false);
  exec::conversation c;
  if (!run.system.empty())
    c.messages.push_back(model::system_message(run.system));
  c.messages.push_back(model::user_message(run.prompt));
  c.tools_json = run.tools;
  if (settings.is_object() && settings.contains("schema"))
    c.schema_json = settings["schema"].dump();
  if (settings.is_object() && settings.contains("temperature") &&
      settings["temperature"].is_number())
    c.temperature = settings["temperature"].get<double>();
  c.max_output_tokens = std::max<std::int64_t>(0, number_setting(settings, "max_output_tokens", 0));
  c.max_turns = static_cast<int>(std::clamp<std::int64_t>(
      number_setting(settings, "max_turns", limits::model_turns), 1, limits::model_turns * 4));
  const auto* kernel = x->configuration->find_kernel(e.kernel_id);
  const auto* agent = kernel == nullptr ? nullptr : config::find_agent(*kernel, e.agent_id);
  if (agent != nullptr)
    c.budget = agent->budget.run;
  c.scopes = exec::day_scopes(*x->configuration, parts.context->node_id, e.kernel_id, e.agent_id,
                              agent == nullptr ? config::budget_limit{} : agent->budget.day);
  c.dispatch_id = e.dispatch_id + "/reevaluation";
  c.kernel_id = e.kernel_id;
  c.agent_id = e.agent_id;
  c.fence = static_cast<std::int64_t>(parts.context->ports.random->next() >> 1U);
  c.context_level = run.attempt.level;
  // Nothing is done: each call is answered from the record.
  c.judge = [](const model::tool_call&) {
    return exec::judgement{config::policy_decision::allow, "recorded answer"};
  };
  c.unit = [random = parts.context->ports.random] { return random->unit(); };
  return c;
}

json came_to_json(const record::came_to& c) {
  return {{"citations", c.citations}, {"actions", c.actions}, {"conclusion", c.conclusion}};
}

json drift_json(const record::drift& d) {
  return {{"citations", d.citations},
          {"actions", d.actions},
          {"conclusion", d.conclusion},
          {"whole", d.whole()}};
}

double rounded(double share) {
  return std::round(share * kept_digits) / kept_digits;
}

/// Nothing is learned from it: the fold counts uses and outcomes alone.
graph::edge fact_of(const exchange_ptr& x, const second_run& run, const record::drift& d) {
  const auto& context = *x->self->state.parts.context;
  const json meta{{"agent", run.execution.agent_id}, {"kind", "reevaluation"},
                  {"provider", run.provider},        {"model", run.model},
                  {"drift", rounded(d.whole())},     {"citations", rounded(d.citations)},
                  {"actions", rounded(d.actions)},   {"conclusion", rounded(d.conclusion)}};
  const auto now = context.ports.clock->now();
  return {"exec_" + run.execution.dispatch_id,
          "decision_" + make_uuid_v7(now, *context.ports.random), "decided_by", now,
          meta.dump(-1, ' ', false, json::error_handler_t::replace)};
}

void conclude(const exchange_ptr& x, const run_ptr& run, const conversation_reply& r) {
  const auto loop = std::dynamic_pointer_cast<exec::chat_loop>(r.dialogue);
  if (r.cut)
    return x->fail_with(*r.cut);
  const auto who = run->model + " at provider " + run->provider;
  if (loop == nullptr || loop->outcome().end != exec::chat_end::answered)
    return x->fail_with(
        {errc::refused,
         "no answer from the model: " +
             (loop == nullptr ? std::string("the call did not start")
                              : config::redact_text(loop->outcome().error, r.secrets)),
         who, "test it: boyd doctor --provider " + run->provider});
  run->now.conclusion = config::redact_text(loop->outcome().text, r.secrets);
  for (auto& call : run->now.actions)
    call = config::redact_text(std::move(call), r.secrets);
  run->before.citations = record::citations_in(run->attempt, run->before.conclusion);
  run->before.actions = record::actions_of(run->attempt);
  run->now.citations = record::citations_in(run->attempt, run->now.conclusion);
  const auto d = record::drift_of(run->before, run->now);
  const auto used = loop->usage();
  json body{{"dispatch_id", run->execution.dispatch_id},
            {"agent_id", run->execution.agent_id},
            {"provider", run->provider},
            {"model", run->model},
            {"drift", drift_json(d)},
            {"recorded", came_to_json(run->before)},
            {"now", came_to_json(run->now)},
            {"tokens", used.input_tokens.value_or(0) + used.output_tokens.value_or(0)},
            {"cost", format_dollars(used.cost_microusd.value_or(0))},
            {"took_ms", r.took.count()}};
  graph_request request;
  request.facts.push_back(fact_of(x, *run, d));
  body["fact"] = request.facts.front().to;
  ask<graph_reply>(x->self, x->self->state.parts.graph_recorder, std::move(request),
                   [x, body = std::move(body)](const result<graph_reply>& written) mutable {
                     body["unrecorded"] = written ? std::string() : to_string(written.error());
                     x->reply("reevaluation", std::move(body));
                   });
}

void ask_again(const exchange_ptr& x, const run_ptr& run, std::vector<exec::chat_target> targets) {
  conversation_order order;
  order.targets = std::move(targets);
  order.make = [c = conversation_of(x, *run)](std::vector<exec::chat_target> keyed) mutable {
    c.targets = std::move(keyed);
    return std::make_shared<exec::chat_loop>(std::move(c));
  };
  order.answer_tool = [run](const model::tool_call& call) {
    run->now.actions.push_back(call.name + " " + call.arguments);
    return run->recorded->answer(call.name, call.arguments);
  };
  order.caller = run->execution.kernel_id + "/" + run->execution.agent_id;
  order.limit = longest_conversation;
  order.governor = x->self->state.parts.governor;
  converse(x, std::move(order), [x, run](const conversation_reply& r) { conclude(x, run, r); });
}

void take_record(const exchange_ptr& x, const json& body, const workspace_reply& r) {
  auto e = record::read_execution(r.record);
  if (!e)
    return x->fail_with(e.error());
  auto run = std::make_shared<second_run>();
  run->execution = std::move(*e);
  if (run->execution.attempts.empty())
    return x->fail_with({errc::not_found, "no recorded attempt", run->execution.dispatch_id,
                         "boyd explain " + run->execution.dispatch_id});
  run->attempt = run->execution.attempts.back();
  if (auto taken = take_texts(*run, *r.replay); !taken)
    return x->fail_with(taken.error());
  run->recorded.emplace(run->attempt, r.replay->results);
  auto targets = targets_of(*x, *run, body);
  if (!targets)
    return x->fail_with(targets.error());
  ask_again(x, run, std::move(*targets));
}

} // namespace

void reevaluate(exchange_ptr x, const std::string& id) {
  // It costs money, and a program that Boyd started has a budget of its own.
  if (x->request.caller && !may_decide(*x))
    return x->fail_with(not_a_person(*x, x->request.path));
  const auto body = x->body();
  if (!body)
    return;
  if (!x->self->state.parts.context->ports.http)
    return x->fail_with({errc::refused, "model calls are not available here", {}, {}});
  find_execution(x, id, [x, body = *body](const std::string& dispatch_id) {
    workspace_request request;
    request.what = replay_execution{dispatch_id};
    ask<workspace_reply>(
        x->self, x->self->state.parts.workspace, std::move(request),
        [x, body](const result<workspace_reply>& r) {
          if (!r)
            return x->fail_with(r.error());
          take_record(x, body, *r);
        },
        record_time);
  });
}

} // namespace boyd::gateway_impl
