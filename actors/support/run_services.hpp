#pragma once

#include "actors/support/role.hpp"
#include "messages/interfaces.hpp"

#include <memory>

namespace boyd {

/// What dispatchers and attempts ask.
struct run_services {
  store_actor store;
  permits_actor permits;
  workspace_actor workspace;
  governor_actor governor;
  approvals_actor approvals{};
  /// Null: agents have no tools of servers. A run goes on when that part is started anew.
  std::shared_ptr<const role<mcp_actor>> mcp{};
  /// Hears what runs write, while somebody watches: see watchers().
  std::shared_ptr<const role<event_listener_actor>> watched{};

  mcp_actor servers() const { return mcp ? mcp->player() : mcp_actor{}; }
  /// Null: nobody watches.
  event_listener_actor watchers() const {
    return watched ? watched->player() : event_listener_actor{};
  }
};

} // namespace boyd
