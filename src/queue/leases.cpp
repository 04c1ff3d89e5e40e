#include "boyd/queue/leases.hpp"

#include <algorithm>

namespace boyd::queue {

held_leases::held_leases(milliseconds renew_every, milliseconds margin)
    : renew_every_(renew_every), margin_(margin) {}

void held_leases::granted(const std::string& dispatch_id, std::int64_t fence,
                          steady_time call_started, milliseconds lease) {
  auto& g = held_[dispatch_id];
  if (g.fence > fence)
    return;
  g = grant{fence, call_started, call_started + lease - margin_, false};
}

void held_leases::renewed(const std::vector<store::renew_leases::held>& asked,
                          const std::vector<std::string>& lost, steady_time call_started,
                          milliseconds lease) {
  for (const auto& a : asked) {
    const auto it = held_.find(a.dispatch_id);
    if (it == held_.end() || it->second.fence != a.fence)
      continue;
    auto& g = it->second;
    if (std::find(lost.begin(), lost.end(), a.dispatch_id) != lost.end()) {
      g.refused = true;
      continue;
    }
    g.from = std::max(g.from, call_started);
    g.until = std::max(g.until, call_started + lease - margin_);
  }
}

void held_leases::released(const std::string& dispatch_id, std::int64_t fence) {
  const auto it = held_.find(dispatch_id);
  if (it != held_.end() && it->second.fence == fence)
    held_.erase(it);
}

std::vector<store::renew_leases::held> held_leases::due(steady_time now) const {
  std::vector<store::renew_leases::held> out;
  for (const auto& [id, g] : held_)
    if (!g.refused && g.from + renew_every_ <= now && now < g.until)
      out.push_back({id, g.fence});
  return out;
}

std::vector<store::renew_leases::held> held_leases::take_lost(steady_time now) {
  std::vector<store::renew_leases::held> out;
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.refused || it->second.until <= now) {
      out.push_back({it->first, it->second.fence});
      it = held_.erase(it);
    } else {
      ++it;
    }
  }
  return out;
}

std::optional<steady_time> held_leases::next_loss() const {
  std::optional<steady_time> next;
  for (const auto& [id, g] : held_) {
    const auto at = g.refused ? g.from : g.until;
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

} // namespace boyd::queue
