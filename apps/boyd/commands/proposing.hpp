#pragma once

#include "../client.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../signals.hpp"
#include "boyd/improve/performer.hpp"

#include <memory>
#include <string>
#include <vector>

namespace boyd::app {

/// The agents that answer the tasks of an improvement cycle (`improve.executors`): runs of a node
/// in this process, in a home of its own below the repository's outputs, so that policies, budgets,
/// sandboxes and records are what they are everywhere. Not thread-safe.
class proposing {
 public:
  /// `configuration_path`: where they are configured. `repository`: on which they work.
  proposing(std::string home, std::string configuration_path, std::string repository,
            const ports& local, signal_watch& signals);
  ~proposing();
  proposing(const proposing&) = delete;
  proposing& operator=(const proposing&) = delete;

  /// One run of one agent; the node is started with the first. Its answer is its output, or, of one
  /// that works in a worktree and changed something there, the patch. Blocking; a signal ends it.
  improve::answer_end ask(const improve::agent_order& order);

 private:
  result<void> open();
  result<json> run(const improve::agent_order& order);
  result<json> await_dispatch(const std::string& id);
  improve::answer_end answer_of(const json& row);

  place where_;
  std::string repository_;
  const ports& local_;
  signal_watch& signals_;
  std::unique_ptr<client> client_;
  std::vector<std::string> secrets_; ///< of the agents' configuration
};

} // namespace boyd::app
