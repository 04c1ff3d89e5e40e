#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// The workers that live, by their parts' names: who must be named when a process ends although
/// they hang. Threads: any.
class worker_roll : public std::enable_shared_from_this<worker_roll> {
 public:
  /// On the roll until the token is gone.
  std::shared_ptr<void> enter(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
    return {nullptr, [roll = shared_from_this(), name](void*) { roll->leave(name); }};
  }

  /// Each name once, sorted.
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (auto it = names_.begin(); it != names_.end(); it = names_.upper_bound(*it))
      all.push_back(*it);
    return all;
  }

 private:
  void leave(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto it = names_.find(name); it != names_.end())
      names_.erase(it);
  }

  mutable std::mutex mutex_;
  std::multiset<std::string> names_;
};

} // namespace boyd
