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

  /// Null: agents remember nothing. A run goes on when one of these parts is started anew.
  std::shared_ptr<const role<state_writer_actor>> state_writer{};
  std::shared_ptr<const role<knowledge_actor>> knowledge{};

  state_writer_actor writer() const {
    return state_writer ? state_writer->player() : state_writer_actor{};
  }
  knowledge_actor knows() const { return knowledge ? knowledge->player() : knowledge_actor{}; }
  mcp_actor servers() const { return mcp ? mcp->player() : mcp_actor{}; }
  /// Null: nobody watches.
  event_listener_actor watchers() const {
    return watched ? watched->player() : event_listener_actor{};
  }
};

} // namespace boyd
