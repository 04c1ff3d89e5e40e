#include "actors/dispatcher/pool_parts.hpp"
#include "actors/support/ask.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace boyd::dispatcher_pool {

namespace {

/// Rows are cancelled in batches of this many.
constexpr std::size_t cancel_batch = 200;

/// Between two lines of the log about the same.
constexpr milliseconds told_again = 1h;

void warn_left(const std::string& kernel, const error& e) {
  spdlog::warn("dispatchers: cannot cancel dispatches of removed agents of {}: {}", kernel,
               to_string(e));
}

bool is_known(const config::configuration& c, const dispatch& row) {
  const auto* k = c.find_kernel(row.kernel_id);
  return k != nullptr && config::find_agent(*k, row.agent_id) != nullptr;
}

void cancel_rows(self_pointer self, const std::string& kernel, const std::vector<dispatch>& rows) {
  store_request cancels;
  for (const auto& row : rows) {
    spdlog::warn("dispatchers: {} cancelled: {}/{} is no longer configured", row.dispatch_id,
                 row.kernel_id, row.agent_id);
    cancels.add(store::cancel_dispatch{row.dispatch_id, "its agent is no longer configured"});
  }
  ask<store_reply>(self, self->state.services.store, std::move(cancels),
                   [kernel](result<store_reply> r) {
                     if (!r)
                       warn_left(kernel, r.error());
                   });
}

void tell_left(self_pointer self, const std::string& kernel, const std::string& agent) {
  auto& s = self->state;
  const auto now = s.context->ports.clock->steady();
  if (agent.empty() || (s.unknown_told != steady_time{} && now - s.unknown_told < told_again))
    return;
  s.unknown_told = now;
  spdlog::warn("dispatchers: dispatches of {}/{} are left to other nodes of this database, because "
               "the agent is not configured here; if no node has it, cancel them: boyd dispatches "
               "ls, boyd dispatches cancel ID",
               kernel, agent);
}

/// What nobody here can run is somebody else's to run, as long as there is somebody.
void unless_others(self_pointer self, const std::string& kernel, const std::string& agent,
                   std::function<void()> cancel) {
  auto& s = self->state;
  if (!s.context->shared_store)
    return cancel();
  ask_store(
      self, s.services.store, store::list_nodes{},
      [self, kernel, agent, cancel = std::move(cancel)](result<store::list_nodes::reply> nodes) {
        if (!nodes)
          return warn_left(kernel, nodes.error());
        const auto& me = self->state.context->node_id;
        if (std::ranges::any_of(*nodes, [&](const auto& n) { return n.node_id != me; }))
          return tell_left(self, kernel, agent);
        cancel();
      });
}

/// Page by page, from `before` on.
void cancel_page(self_pointer self, const std::string& kernel, const std::string& agent,
                 std::string before) {
  store::list_dispatches op;
  op.kernel_id = kernel;
  op.agent_id = agent;
  op.status = dispatch_status::pending;
  op.before = std::move(before);
  op.limit = cancel_batch;
  // A long queue of the others is not read for it: this runs while they begin to work.
  if (const auto* k = self->state.configuration->find_kernel(kernel); k != nullptr && agent.empty())
    for (const auto& a : k->agents)
      op.not_agent_ids.push_back(a.agent_id);
  ask_store(self, self->state.services.store, std::move(op),
            [self, kernel, agent](result<std::vector<dispatch>> rows) {
              if (!rows)
                return warn_left(kernel, rows.error());
              const auto next = rows->size() == cancel_batch ? rows->back().dispatch_id : "";
              std::erase_if(*rows, [&](const dispatch& row) {
                return is_known(*self->state.configuration, row);
              });
              if (!rows->empty())
                cancel_rows(self, kernel, *rows);
              if (!next.empty())
                cancel_page(self, kernel, agent, next);
            });
}

} // namespace

void cancel_unknown(self_pointer self, const std::string& kernel, const std::string& agent) {
  // Asked first: the backlog of somebody else's agent is not to be read at every poll.
  unless_others(self, kernel, agent,
                [self, kernel, agent] { cancel_page(self, kernel, agent, {}); });
}

} // namespace boyd::dispatcher_pool
