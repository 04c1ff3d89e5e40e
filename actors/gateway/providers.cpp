#include "actors/gateway/conversing.hpp"
#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/exec/probe_dialogue.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/queue/spend.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::gateway_impl {

namespace {

/// More than all calls of a probe may take together.
constexpr milliseconds longest_probe = 6min;
/// Under these names the spending has the calls of probes.
constexpr const char* spending_kernel = "boyd";
constexpr const char* spending_agent = "doctor";

/// The models that the provider is asked for: its own, then those that are named elsewhere.
std::vector<std::string> models_of(const config::configuration& c, const config::provider& p) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& provider_id, const std::string& model) {
    if (provider_id == p.provider_id && !model.empty() &&
        std::ranges::find(out, model) == out.end())
      out.push_back(model);
  };
  add(p.provider_id, p.model);
  for (const auto& k : c.kernels) {
    for (const auto* ask : {&k.plan.ask, &k.reduce.ask}) {
      add(ask->provider_id, ask->model);
      for (const auto& f : ask->fallback)
        add(f.provider_id, f.model);
    }
    for (const auto& a : k.agents)
      if (const auto* chat = std::get_if<config::chat_executor>(&a.run)) {
        add(chat->provider_id, chat->model);
        for (const auto& f : chat->fallback)
          add(f.provider_id, f.model);
      }
  }
  return out;
}

json to_json(const std::optional<bool>& finding) {
  return finding ? json(*finding) : json(nullptr);
}

json capability(bool configured, bool said, const std::optional<bool>& found) {
  return {{"configured", configured}, {"said", said}, {"found", to_json(found)}};
}

json capabilities_json(const config::provider& p, const model::found_capabilities& found) {
  const auto& c = p.capabilities;
  return {{"tools", capability(c.tools, p.said.tools, found.tools)},
          {"schema", capability(c.schema, p.said.schema, found.schema)},
          {"stream", capability(c.stream, p.said.stream, found.stream)},
          {"stream_usage", capability(c.stream_usage, p.said.stream_usage, found.stream_usage)}};
}

/// `unkept`: why the findings could not be kept.
json probe_json(const exec::chat_target& at, const exec::probe_dialogue& d,
                const std::vector<std::string>& secrets, const std::string& unkept) {
  json checks = json::array();
  for (const auto& c : d.probe().checks())
    checks.push_back({{"name", c.name},
                      {"state", model::name_of(c.state)},
                      {"what", config::redact_text(c.what, secrets)},
                      {"next", config::redact_text(c.next, secrets)},
                      {"took_ms", c.took.count()}});
  return {{"provider_id", at.provider.provider_id},
          {"base_url", at.provider.base_url},
          {"model", at.model},
          {"ok", d.probe().answers()},
          {"checks", std::move(checks)},
          {"capabilities", capabilities_json(at.provider, d.probe().found())},
          {"tokens", d.used().input + d.used().output},
          {"cost", format_dollars(d.cost())},
          {"unkept", unkept}};
}

/// What was found is kept as a fact of the store, by model; then the answer.
void conclude_probe(const exchange_ptr& x, const exec::chat_target& at,
                    const conversation_reply& r) {
  if (r.cut)
    return x->fail_with(*r.cut);
  const auto d = std::static_pointer_cast<exec::probe_dialogue>(r.dialogue);
  const auto end = [x, at, d, secrets = r.secrets](const std::string& unkept) {
    x->reply("probe", probe_json(at, *d, secrets, unkept));
  };
  // An endpoint that did not answer says nothing of what was found earlier.
  if (d->probe().found() == model::found_capabilities{})
    return end({});
  const auto& parts = x->self->state.parts;
  store::put_fact fact;
  fact.scope = model::findings_scope(at.provider.provider_id);
  fact.key = at.model;
  fact.value =
      model::to_text(d->probe().found(), at.provider.base_url, parts.context->ports.clock->now());
  ask_store(x->self, parts.store, std::move(fact), [end](const result<store::ok>& kept) {
    end(kept ? std::string() : to_string(kept.error()));
  });
}

conversation_order probing_order(const exchange_ptr& x, const exec::chat_target& at) {
  const auto& parts = x->self->state.parts;
  const auto& day = x->configuration->node_settings.budget_day;
  exec::probe_order probe;
  probe.scopes = {{queue::node_scope(parts.context->node_id), day.tokens, day.cost}};
  probe.run_id = make_uuid_v7(parts.context->ports.clock->now(), *parts.context->ports.random);
  probe.kernel_id = spending_kernel;
  probe.agent_id = spending_agent;
  probe.now = [clock = parts.context->ports.clock] { return clock->steady(); };
  conversation_order order;
  order.targets = {at};
  order.uses_findings = false;
  order.make = [probe = std::move(probe)](const std::vector<exec::chat_target>& with_keys) mutable {
    probe.target = with_keys.front();
    return std::make_shared<exec::probe_dialogue>(probe);
  };
  order.caller = std::string(spending_kernel) + "/" + spending_agent;
  order.limit = longest_probe;
  return order;
}

error unknown_provider(const config::configuration& c, const std::string& id) {
  std::vector<std::string_view> known;
  std::string all;
  for (const auto& p : c.providers) {
    known.emplace_back(p.provider_id);
    all += (all.empty() ? "known: " : ", ") + p.provider_id;
  }
  const auto close = nearest(id, known);
  return {errc::not_found, "no such provider: " + id, c.path,
          all.empty()      ? "providers are set in the configuration under `providers`"
          : !close.empty() ? "did you mean " + std::string(close) + "?"
                           : all};
}

} // namespace

void list_providers(exchange_ptr x) {
  json items = json::array();
  for (const auto& p : x->configuration->providers)
    items.push_back({{"provider_id", p.provider_id},
                     {"base_url", p.base_url},
                     {"models", models_of(*x->configuration, p)}});
  x->reply("providers", {{"items", std::move(items)}});
}

void probe_provider(exchange_ptr x, const std::string& id) {
  const auto& parts = x->self->state.parts;
  const auto* provider = config::find_provider(*x->configuration, id);
  if (provider == nullptr)
    return x->fail_with(unknown_provider(*x->configuration, id));
  const auto models = models_of(*x->configuration, *provider);
  const auto model = !x->query("model").empty() ? x->query("model")
                     : models.empty()           ? std::string()
                                                : models.front();
  if (model.empty())
    return x->fail_with({errc::invalid_argument, "provider " + id + " has no model",
                         x->configuration->path, "set `model` of the provider, or use --model"});
  if (!parts.context->ports.http)
    return x->fail_with({errc::refused, "model calls are not available here", {}, {}});
  auto targets = exec::chat_targets(*x->configuration, id, model, {});
  if (!targets)
    return x->fail_with(targets.error());
  converse(x, probing_order(x, targets->front()),
           [x, at = targets->front()](const conversation_reply& r) { conclude_probe(x, at, r); });
}

} // namespace boyd::gateway_impl
