#pragma once

#include "messages/interfaces.hpp"

namespace boyd {

/// What dispatchers and attempts ask.
struct run_services {
  store_actor store;
  permits_actor permits;
  workspace_actor workspace;
  governor_actor governor;
  approvals_actor approvals{};
  mcp_actor mcp{}; ///< null: agents have no tools of servers
};

} // namespace boyd
