#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// On the roll beside the store's worker while that opens the database. Nothing acknowledged
/// depends on the end of it: what it has begun is undone by the next one (a migration is a
/// transaction).
inline constexpr const char* opening_of_store = "the opening of the store";

/// The workers that live, by their parts' names: who must be named when a process ends although
/// they hang. Threads: any.
class worker_roll : public std::enable_shared_from_this<worker_roll> {
 public:
  /// On the roll until the token is gone.
  std::shared_ptr<void> enter(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return add(name);
  }

  /// The same for who must be the only one of its name. Null: another one is still on the roll; the
  /// last of them calls `on_free`, once, from the thread in which it leaves. It must not throw.
  std::shared_ptr<void> enter_alone(const std::string& name, std::function<void()> on_free) {
    const std::lock_guard lock(mutex_);
    if (!names_.contains(name))
      return add(name);
    waiting_.emplace(name, std::move(on_free));
    return nullptr;
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
  std::shared_ptr<void> add(const std::string& name) {
    names_.insert(name);
    return {this, [roll = shared_from_this(), name](void*) { roll->leave(name); }};
  }

  void leave(const std::string& name) {
    std::vector<std::function<void()>> told;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = names_.find(name); it != names_.end())
        names_.erase(it);
      if (names_.contains(name))
        return;
      const auto [first, last] = waiting_.equal_range(name);
      for (auto it = first; it != last; ++it)
        told.push_back(std::move(it->second));
      waiting_.erase(first, last);
    }
    for (const auto& on_free : told)
      on_free();
  }

  mutable std::mutex mutex_;
  std::multiset<std::string> names_;
  std::multimap<std::string, std::function<void()>> waiting_;
};

} // namespace boyd
