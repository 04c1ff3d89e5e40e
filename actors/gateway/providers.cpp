#include "actors/gateway/state.hpp"
#include "actors/prober/actor.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::gateway_impl {

namespace {

/// More than all calls of a probe may take together.
constexpr milliseconds longest_probe = 6min;

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

json probe_json(const config::provider& p, const std::string& model, const probe_reply& r) {
  json checks = json::array();
  for (const auto& c : r.checks)
    checks.push_back({{"name", c.name},
                      {"state", model::name_of(c.state)},
                      {"what", c.what},
                      {"next", c.next},
                      {"took_ms", c.took.count()}});
  return {{"provider_id", p.provider_id},
          {"base_url", p.base_url},
          {"model", model},
          {"ok", r.answers},
          {"checks", std::move(checks)},
          {"capabilities", capabilities_json(p, r.found)},
          {"tokens", r.used.input + r.used.output},
          {"cost", format_dollars(r.cost)},
          {"unkept", r.unkept}};
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
          all.empty()      ? "providers are named in the configuration under `providers`"
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
                         x->configuration->path, "set `model` at the provider, or give --model"});
  if (!parts.context->ports.http)
    return x->fail_with({errc::refused, "this node calls no models", {}, {}});
  probe_order order;
  order.context = parts.context;
  order.configuration = x->configuration;
  order.provider = *provider;
  order.model = model;
  order.store = parts.store;
  order.workspace = parts.workspace;
  order.asker = x->self->address();
  const auto prober = spawn_prober(x->self->system(), std::move(order));
  x->self->monitor(prober);
  x->self->state.probers.add(prober);
  ask<probe_reply>(
      x->self, prober, probe_query{},
      [x, provider, model, prober](result<probe_reply> r) {
        if (!r)
          return x->fail_with(r.error());
        x->reply("probe", probe_json(*provider, model, *r));
      },
      longest_probe);
}

} // namespace boyd::gateway_impl
