#pragma once

#include "../json_view.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace boyd::app {

/// What is in a file; nothing when it cannot be read.
std::string text_in(const std::string& path);

/// What a crash trial was told of cycles that were whole, and what a home has of it: such a cycle
/// is acknowledged with its commit, its row in STATE.md and its edges in the graph.
class crash_promises {
 public:
  /// Takes what `boyd cycle --json` said; an answer with problems, or none, promises nothing.
  void heard(const json& answer);

  /// What is missing below `home`. `commits`: the subjects of a kernel's commits; a kernel that has
  /// none there is not looked at, for git may not be installed.
  std::vector<std::string>
  broken(const std::string& home,
         const std::map<std::string, std::set<std::string>>& commits) const;

 private:
  struct whole_cycle {
    std::string id, kernel, subject;
    std::vector<std::string> done; ///< dispatches
  };

  std::vector<whole_cycle> cycles_; ///< as they were told
};

} // namespace boyd::app
