#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace boyd::adapters::git {

/// Files that the history leaves out, and oddities of a repository: one sentence for each path, for
/// people. Bounded; more than that are counted. Not thread-safe.
class remarks {
 public:
  void clear() {
    by_path_.clear();
    more_ = 0;
  }

  void add(const std::string& path, const std::string& why) {
    if (by_path_.contains(path) || by_path_.size() < most)
      by_path_[path] = why;
    else
      ++more_;
  }

  /// `path`, as readable text, and why.
  std::vector<std::string> texts() const;

 private:
  static constexpr std::size_t most = 16;

  std::map<std::string, std::string> by_path_;
  std::size_t more_ = 0;
};

} // namespace boyd::adapters::git
