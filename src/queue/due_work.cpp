#include "boyd/queue/due_work.hpp"

#include <algorithm>

namespace boyd::queue {

void add_due(std::vector<store::due_agents::row>& all, const store::due_agents::row& one) {
  const auto same = std::ranges::find_if(all, [&](const store::due_agents::row& r) {
    return r.agent_id == one.agent_id && r.kernel_id == one.kernel_id;
  });
  if (same == all.end()) {
    all.push_back(one);
    return;
  }
  same->count += one.count;
  same->priority = std::max(same->priority, one.priority);
}

} // namespace boyd::queue
