#include "boyd/exec/chat_targets.hpp"

#include "boyd/core/text.hpp"
#include "boyd/queue/spend.hpp"

#include <utility>

namespace boyd::exec {

result<std::vector<chat_target>> chat_targets(const config::configuration& c,
                                              const std::string& provider_id,
                                              const std::string& model,
                                              const std::vector<config::model_fallback>& fallback) {
  std::vector<config::model_fallback> all{{provider_id, model, {}}};
  all.insert(all.end(), fallback.begin(), fallback.end());
  std::vector<chat_target> targets;
  for (const auto& one : all) {
    const auto* provider = config::find_provider(c, one.provider_id);
    if (provider == nullptr)
      return fail(errc::invalid_configuration, "no such provider", one.provider_id);
    chat_target t;
    t.provider = *provider;
    t.model = one.model.empty() ? provider->model : one.model;
    t.key = provider->api_key;
    t.on = one.on;
    if (t.model.empty())
      return fail(errc::invalid_configuration, "no model given", one.provider_id,
                  "set `model` next to the provider's name, or in the provider");
    targets.push_back(std::move(t));
  }
  return targets;
}

std::vector<store::reserve_spend::limit>
day_scopes(const config::configuration& c, const std::string& node_id, const std::string& kernel_id,
           const std::string& agent_id, const config::budget_limit& day) {
  const auto& node = c.node_settings.budget_day;
  return {{queue::agent_scope(kernel_id, agent_id), day.tokens, day.cost},
          {queue::node_scope(node_id), node.tokens, node.cost}};
}

std::string key_in(std::string_view file) {
  return std::string(first_line(file));
}

bool leaves_open(const config::provider& p) {
  return !(p.said.tools && p.said.schema && p.said.stream && p.said.stream_usage);
}

} // namespace boyd::exec
