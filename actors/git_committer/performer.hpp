#pragma once

#include "actors/keeper/core.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/state/versioned_store.hpp"
#include "messages/health.hpp"
#include "messages/repository.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boyd {

/// How often each repository is looked at for packing.
inline constexpr milliseconds packing_interval = 5min;
/// A commit that failed and may well be made now is told of for so long after the latest attempt.
inline constexpr milliseconds failure_memory = 10s;

/// The git committer worker's side without actors: cycle boundaries and questions about the past,
/// with versioned stores of its own, so that a long commit never delays a write of STATE.md.
/// Blocking; one thread.
class repository_session {
 public:
  repository_session(node_context_ptr context, configuration_ptr configuration);

  void perform(std::vector<job<repository_request, repository_reply>>& batch);

  /// Tries degraded repositories again; otherwise packs at most one repository whose turn it is.
  /// The keeper probes only while nobody waits.
  void probe();

  /// The worst of all kernels, by name.
  part_health health() const;

 private:
  struct home {
    std::unique_ptr<state::versioned_store> store;
    std::string failed_commit; ///< why the latest commit failed; empty: it did not
    bool may_pass = false;     ///< that failure can go away without another commit
    std::optional<utc_time> since;
    steady_time failed_at{}; ///< the latest failure
    steady_time pack_at{};
  };

  result<repository_reply> answer(const repository_request& request);
  result<repository_reply> carry_out(home& h, const commit_boundary& what);
  result<repository_reply> carry_out(home& h, const commit_cycle& what);
  result<repository_reply> committed(home& h, result<std::string> commit);
  result<repository_reply> carry_out(home& h, const query_history& what);
  result<repository_reply> carry_out(home& h, const query_file_at& what);
  result<repository_reply> carry_out(home& h, const query_diff& what);
  result<home*> home_of(const std::string& kernel_id);

  node_context_ptr context_;
  configuration_ptr configuration_;
  std::map<std::string, home> homes_;
  std::string last_error_;
};

} // namespace boyd
