#pragma once

#include "boyd/improve/performer.hpp"

#include <string>

namespace boyd::improve {

/// One cycle for a repository: a file that names its holder. It is stale when its holder is gone or
/// has not renewed it for lock_ttl. Whoever lost it finds out before the next write.
class repository_lock {
 public:
  repository_lock(std::string path, const improve_ports& ports);
  ~repository_lock();
  repository_lock(const repository_lock&) = delete;
  repository_lock& operator=(const repository_lock&) = delete;

  /// `locked`: another cycle works here.
  result<void> acquire();
  /// Renews it; `locked`: another cycle has taken it over.
  result<void> keep();
  /// Renews it when a good part of its time is over, for those who wait: keep() finds out later
  /// that it was lost.
  void renew();

 private:
  result<void> make();
  result<bool> is_mine();
  result<void> take_over(const std::string& seen);
  std::string text() const;

  std::string path_;
  const improve_ports& ports_;
  bool held_ = false;
  steady_time renewed_{}; ///< when it was written last
};

} // namespace boyd::improve
