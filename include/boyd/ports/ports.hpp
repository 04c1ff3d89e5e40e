#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/unpack.hpp"

#include <functional>
#include <memory>
#include <string>

namespace boyd {

class clock_port;
class entropy;
class confined_files;
class file_system;
class http_client;
class knowledge_index;
class process_runner;
class repository_provider;
class time_zones;
class worktrees;

/// What the outside world looks like to one node: real adapters in production, simulated ones in
/// simulation. Filled once at wiring; shared by all actors.
struct ports {
  std::shared_ptr<clock_port> clock;
  std::shared_ptr<entropy> random; ///< thread-safe
  std::shared_ptr<file_system> files;
  std::shared_ptr<repository_provider> repositories;
  std::shared_ptr<process_runner> processes;
  std::shared_ptr<const time_zones> zones;
  /// A new store object, not opened; made by the store worker at each of its starts.
  std::function<std::unique_ptr<dispatch_store>()> make_store;
  /// A new index of memory at this path, not opened; made by the memory worker at each of its
  /// starts. Null: there is none.
  std::function<std::unique_ptr<knowledge_index>(const std::string& path)> make_knowledge_index;
  /// For segments of the log of facts that were compressed; null: they cannot be read.
  unpack_function unpack;
  /// Starts listening for other nodes' wake-ups; null result: this store has none. `wake` is called
  /// from the source's own thread. Made and ended by the store's worker: its end may block.
  std::function<std::unique_ptr<wakeup_source>(wake_function wake)> listen;
  /// For calls of models, webhooks and heartbeats; null: there are none.
  std::shared_ptr<http_client> http;
  /// The file tools of agents; null: there are none.
  std::shared_ptr<confined_files> workspaces;
  /// Worktrees for runs that want one; null: there are none.
  std::shared_ptr<boyd::worktrees> trees;
};

} // namespace boyd
