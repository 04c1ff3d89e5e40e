#include "actors/permits/core.hpp"

#include "boyd/core/invariant.hpp"

#include <algorithm>
#include <limits>

namespace boyd {

void permit_core::set_limits(int node, const std::vector<std::pair<std::string, int>>& kernels) {
  node_limit_ = node;
  kernel_limits_.clear();
  for (const auto& [id, limit] : kernels)
    if (limit > 0)
      kernel_limits_[id] = limit;
}

void permit_core::wish(holder_id id, const std::string& name, const std::string& kernel, int count,
                       int priority) {
  auto& h = holders_[id];
  h.name = name;
  h.kernel = kernel;
  h.priority = priority;
  // A repeated wish keeps its place in the queue.
  if (h.wanted == 0 && count > 0)
    h.since = next_turn_++;
  h.wanted = std::max(count, 0);
}

void permit_core::release(holder_id id, int count) {
  auto it = holders_.find(id);
  if (it == holders_.end())
    return;
  const int n = std::min(count, it->second.held);
  it->second.held -= n;
  in_use_ -= n;
  auto& of_kernel = kernel_in_use_[it->second.kernel];
  of_kernel -= n;
  invariant(n >= 0 && in_use_ >= 0 && of_kernel >= 0, "permits: none is given back twice");
  // With others in hand nobody knows which of them came back: the time decides then.
  if (n > 0 && probation_ == id && it->second.held == 0)
    outlived();
}

void permit_core::pace(int runs) {
  paced_ += std::max(runs, 0);
}

void permit_core::outlived() {
  probation_ = 0;
}

void permit_core::gone(holder_id id) {
  auto it = holders_.find(id);
  if (it == holders_.end())
    return;
  release(id, it->second.held);
  holders_.erase(it);
}

int permit_core::kernel_room(const std::string& kernel) const {
  auto limit = kernel_limits_.find(kernel);
  if (limit == kernel_limits_.end())
    return std::numeric_limits<int>::max();
  auto used = kernel_in_use_.find(kernel);
  return limit->second - (used == kernel_in_use_.end() ? 0 : used->second);
}

int permit_core::room(const std::string& kernel) const {
  const int room = std::min(node_limit_ - in_use_, kernel_room(kernel));
  if (paced_ == 0 && probation_ == 0)
    return room;
  return probation_ == 0 ? std::min(room, 1) : 0;
}

std::vector<permit_core::grant> permit_core::distribute() {
  std::vector<std::pair<holder_id, holder*>> waiting;
  for (auto& [id, h] : holders_)
    if (h.wanted > 0)
      waiting.emplace_back(id, &h);
  std::ranges::sort(waiting, [](const auto& a, const auto& b) {
    if (a.second->priority != b.second->priority)
      return a.second->priority > b.second->priority;
    return a.second->since < b.second->since;
  });
  std::vector<grant> grants;
  for (auto& [id, h] : waiting) {
    const int n = std::min(h->wanted, room(h->kernel));
    if (n <= 0)
      continue;
    h->held += n;
    h->wanted -= n;
    // Who still wants more goes to the end of its priority.
    h->since = next_turn_++;
    in_use_ += n;
    kernel_in_use_[h->kernel] += n;
    if (paced_ > 0) {
      --paced_;
      probation_ = id;
    }
    grants.push_back({id, n});
  }
  invariant(grants.empty() || in_use_ <= node_limit_, "permits: in use <= limit after a grant");
  peak_ = std::max(peak_, in_use_);
  return grants;
}

std::vector<std::pair<std::string, int>> permit_core::holders() const {
  std::vector<std::pair<std::string, int>> all;
  for (const auto& [id, h] : holders_)
    if (h.held > 0)
      all.emplace_back(h.name, h.held);
  return all;
}

} // namespace boyd
