#include "actors/dispatcher/pool_health.hpp"

#include <algorithm>

namespace boyd {

part_health pool_health(const std::vector<child_view>& children, const std::string& store_problem,
                        bool draining) {
  std::string parked;
  for (const auto& c : children)
    if (c.state == "parked")
      parked += (parked.empty() ? "parked: " : ", ") + c.id;
  const bool any_alive = std::ranges::any_of(
      children, [](const auto& c) { return c.state == "running" || c.state == "stopping"; });
  part_health h;
  h.reason = store_problem;
  if (h.reason.empty() && !children.empty() && !any_alive && !draining)
    h.reason = "no dispatcher runs" + (parked.empty() ? "" : "; " + parked);
  else if (h.reason.empty())
    h.reason = parked;
  h.ok = h.reason.empty();
  return h;
}

} // namespace boyd
