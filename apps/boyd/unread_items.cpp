#include "unread_items.hpp"

#include "actors/context/core.hpp"
#include "adapters/posix/confined_files.hpp"
#include "boyd/context/reading.hpp"

#include <utility>

namespace boyd::app {

namespace {

context::reading_order order_of(const config::agent& agent, std::string root) {
  context::reading_order order;
  order.root = std::move(root);
  order.scope = "unused"; // nobody asks for the items' ids
  order.references = agent.reads.items;
  for (auto& named : context::references_in(agent.prompt, true))
    order.references.push_back(std::move(named));
  std::erase_if(order.references, [](const context::wanted& w) {
    return w.what.kind == context::reference_kind::command;
  });
  return order;
}

} // namespace

std::vector<config::finding> unread_items(const config::configuration& configuration,
                                          const place& where, const std::string& agent_id) {
  const auto files = adapters::make_confined_files({where.home});
  std::vector<config::finding> all;
  for (std::size_t k = 0; k < configuration.kernels.size(); ++k) {
    const auto& kernel = configuration.kernels[k];
    for (std::size_t a = 0; a < kernel.agents.size(); ++a) {
      const auto& agent = kernel.agents[a];
      if (!agent.enabled || (!agent_id.empty() && agent.agent_id != agent_id))
        continue;
      const auto order =
          order_of(agent, reading_root(agent, where.layout().kernel(kernel.kernel_id)));
      if (order.references.empty() || !files->find(order.root, "."))
        continue;
      const auto key = "kernels[" + std::to_string(k) + "].agents[" + std::to_string(a) + "].";
      for (const auto& item : context::read_references(order, *files)) {
        if (item.failure.empty())
          continue;
        config::finding found;
        found.file = configuration.path;
        found.key = key + (item.from == context::origin::declared ? "context" : "prompt");
        found.problem = "agent " + agent.agent_id + " could not read " + item.path + ": " +
                        item.failure + " (below " + order.root + ")";
        all.push_back(std::move(found));
      }
    }
  }
  return all;
}

} // namespace boyd::app
