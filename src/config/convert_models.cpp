#include "convert_models.hpp"

#include "reading.hpp"

namespace boyd::config {
namespace {

std::map<std::string, model_price> prices_of(const tree& t) {
  std::map<std::string, model_price> out;
  for (std::size_t i = 0; i < t.items.size(); ++i) {
    const auto& item = t.items[i];
    model_price price;
    price.input = dollars(item, "input");
    price.cached_input =
        item.find("cached_input") == nullptr ? price.input : dollars(item, "cached_input");
    price.output = dollars(item, "output");
    out.emplace(t.keys[i].text, price);
  }
  return out;
}

model_capabilities capabilities_of(const tree& t) {
  model_capabilities out;
  out.tools = flag(t, "tools");
  out.schema = flag(t, "schema");
  out.stream = flag(t, "stream");
  out.stream_usage = flag(t, "stream_usage");
  return out;
}

model_capabilities said_of(const tree& t) {
  const auto said = [&](std::string_view key) {
    const auto* found = t.find(key);
    return found != nullptr && !found->assumed;
  };
  return {said("tools"), said("schema"), said("stream"), said("stream_usage")};
}

/// The answer's schema as one line of JSON, or empty.
std::string schema_of(const pass& p, const tree& t) {
  if (const auto* here = t.find("schema")) {
    return json_of(*here, {}).dump();
  }
  const auto found = p.texts.find(resolve(p.path, text(t, "schema_file")));
  return found == p.texts.end() ? std::string() : found->second;
}

policy_rule rule_of(const tree& t) {
  static constexpr std::array<std::pair<std::string_view, policy_decision>, 3> decisions{
      {{"deny", policy_decision::deny},
       {"allow", policy_decision::allow},
       {"ask", policy_decision::ask}}};
  policy_rule out;
  out.tool = text(t, "tool");
  out.path = text(t, "path");
  out.command = text(t, "command");
  out.host = text(t, "host");
  out.decision = choice(t, "decision", decisions);
  out.reason = text(t, "reason");
  return out;
}

} // namespace

provider provider_of(const pass& p, const tree& t) {
  provider out;
  out.provider_id = text(t, "provider_id");
  out.preset = text(t, "preset");
  out.base_url = text(t, "base_url");
  while (out.base_url.ends_with('/')) {
    out.base_url.pop_back();
  }
  out.api_key = text(t, "api_key");
  out.api_key_file = resolve(p.path, text(t, "api_key_file"));
  out.model = text(t, "model");
  const auto& headers = get(t, "headers");
  for (std::size_t i = 0; i < headers.items.size(); ++i) {
    out.headers.emplace_back(headers.keys[i].text, headers.items[i].text);
  }
  out.prices = prices_of(get(t, "prices"));
  out.capabilities = capabilities_of(get(t, "capabilities"));
  out.said = said_of(get(t, "capabilities"));
  out.max_concurrent = number<int>(t, "max_concurrent");
  out.requests_per_minute = number<int>(t, "requests_per_minute");
  out.tokens_per_minute = number<std::int64_t>(t, "tokens_per_minute");
  out.connect_timeout = duration(t, "connect_timeout");
  out.request_timeout = duration(t, "request_timeout");
  out.max_retries = number<int>(t, "max_retries");
  return out;
}

namespace {

std::vector<model_fallback> fallbacks_of(const tree& t) {
  std::vector<model_fallback> out;
  for (const auto& item : get(t, "fallback").items) {
    out.push_back({text(item, "provider"), text(item, "model"), texts(item, "on")});
  }
  return out;
}

} // namespace

chat_executor chat_executor_of(const pass& p, const tree& t) {
  chat_executor out;
  out.provider_id = text(t, "provider");
  out.model = text(t, "model");
  out.workspace = resolve(p.path, text(t, "workspace"));
  out.system = text(t, "system");
  if (t.find("temperature") != nullptr) {
    out.temperature = number<double>(t, "temperature");
  }
  out.max_output_tokens = number<std::int64_t>(t, "max_output_tokens");
  out.max_turns = number<int>(t, "max_turns");
  out.schema_json = schema_of(p, t);
  out.fallback = fallbacks_of(t);
  out.output_bytes = size(t, "output_bytes");
  return out;
}

approval_notices notices_of(const pass& p, const tree& t) {
  const auto& notify = get(t, "notify");
  return {text(notify, "webhook"), texts(notify, "command"), resolve(p.path, ".")};
}

action_policy policy_of(const tree& t) {
  action_policy out;
  for (const auto& item : get(t, "rules").items) {
    out.rules.push_back(rule_of(item));
  }
  out.actions_per_minute = number<int>(t, "actions_per_minute");
  const auto& approval = get(t, "approval");
  out.approval.expires = duration(approval, "expires");
  out.approval.wait = duration(approval, "wait");
  out.approval.ends_run = text(approval, "then") == "end";
  out.approval.unbound = texts(approval, "unbound");
  return out;
}

agent_budget budget_of(const tree& t) {
  agent_budget out;
  const auto& run = get(t, "run");
  out.run.tokens = number<std::int64_t>(run, "tokens");
  out.run.cost = dollars(run, "cost");
  out.run.turns = number<int>(run, "turns");
  out.run.wall = duration(run, "wall");
  const auto& day = get(t, "day");
  out.day.tokens = number<std::int64_t>(day, "tokens");
  out.day.cost = dollars(day, "cost");
  return out;
}

namespace {

/// Without a provider nobody is asked, and the file says nothing of how.
adviser adviser_of(const tree& t) {
  adviser out;
  if (t.find("provider") == nullptr) {
    return out;
  }
  out.provider_id = text(t, "provider");
  out.model = text(t, "model");
  out.fallback = fallbacks_of(t);
  out.timeout = duration(t, "timeout");
  out.max_output_tokens = number<std::int64_t>(t, "max_output_tokens");
  out.instructions = text(t, "instructions");
  const auto& day = get(t, "budget_day");
  out.budget.day.tokens = number<std::int64_t>(day, "tokens");
  out.budget.day.cost = dollars(day, "cost");
  return out;
}

} // namespace

planner planner_of(const tree& t) {
  static constexpr std::array<std::pair<std::string_view, planner::type_t>, 2> types{
      {{"static", planner::type_t::fixed}, {"llm", planner::type_t::llm}}};
  planner out;
  out.type = choice(t, "type", types);
  out.ask = adviser_of(t);
  if (t.find("provider") != nullptr) {
    out.max_dispatches = number<std::size_t>(t, "max_dispatches");
    out.cooldown = duration(t, "cooldown");
  }
  return out;
}

reducer reducer_of(const tree& t) {
  static constexpr std::array<std::pair<std::string_view, reducer::type_t>, 2> types{
      {{"rules", reducer::type_t::rules}, {"llm", reducer::type_t::llm}}};
  reducer out;
  out.type = choice(t, "type", types);
  out.ask = adviser_of(t);
  return out;
}

} // namespace boyd::config
