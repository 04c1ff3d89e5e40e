#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <caf/actor_system_config.hpp>

#include <memory>
#include <string>

namespace boyd::bench {

/// The real ports of a node at `home` (made if missing) with the store `store` ("sqlite" or a
/// postgres:// URI); child processes by `processes`, or really when it is null. Its kernels follow
/// no schedule. The node's id is kept in the home, as the program keeps it: who comes back to the
/// same home takes its own rows back. `http`: for calls of models; null: there are none.
result<node_context_ptr> make_context(const std::string& home, const std::string& store,
                                      std::shared_ptr<process_runner> processes,
                                      const housekeeping_intervals& housekeeping = {},
                                      std::shared_ptr<http_client> http = {});

/// The store alone, for one thread and without actors; not opened yet.
std::unique_ptr<dispatch_store> make_store(const std::string& home, const std::string& store);

/// CAF as the program configures it.
void configure_actors(caf::actor_system_config& c);

/// Only errors are logged: a benchmark's output is its figures.
void quiet_logs();

} // namespace boyd::bench
