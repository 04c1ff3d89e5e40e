#pragma once

#include "../client.hpp"
#include "../json_view.hpp"

#include <functional>
#include <map>
#include <string>

namespace boyd::app {

/// Dispatches that a foreground cycle runs beside its own plan, because no node does: rows that
/// `boyd dispatches retry` or the API left pending, retries whose back-off has ended, attempts that
/// outlive their cycle's deadline, work of the home's other kernels. What has begun here is waited
/// for. Not thread-safe; blocks.
class other_work {
 public:
  /// Notes what is due: what of it is over when `finish` is called is told as well. Made before the
  /// node claims (own_node_asker).
  other_work(client& c, std::string node_id);

  /// Waits until nothing of this node runs and nothing is due; for due rows that do not begin (a
  /// paused agent, say) a moment only. `say`: one line for people, when a wait begins. Errors:
  /// those of the client; `cancelled` after a signal.
  result<void> finish(const std::function<void(const std::string&)>& say);

  /// `dispatch_id, kernel_id, agent_id, status, attempt, summary, error, failure_class` of each
  /// that has begun, as it was seen last.
  json rows() const;

 private:
  struct work {
    json row;
    bool begun = false; ///< by this process
  };

  result<json> list(const char* status);
  result<void> look(bool first);
  void take(json row);
  /// Those that are to be waited for, and of them those that run.
  struct open_work {
    std::size_t all = 0;
    std::size_t running = 0;
  };
  open_work count_open() const;

  client& client_;
  std::string node_id_;
  std::map<std::string, work> work_; ///< by dispatch id
};

} // namespace boyd::app
