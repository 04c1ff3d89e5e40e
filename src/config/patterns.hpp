#pragma once

#include <cstddef>
#include <string_view>

/// What patterns of tools, paths, commands and hosts (boyd/tools/glob.hpp) say of each other.
namespace boyd::config {

enum class pattern_text { path, plain }; ///< plain: nothing stops `*` and `?`

/// Compares pairs of patterns up to a number of steps in all, and says no to what is beyond them.
class pattern_comparer {
 public:
  explicit pattern_comparer(std::size_t steps) : steps_(steps) {}

  /// Whether `general` surely matches all that `special` matches; no when it is not sure.
  bool covers(std::string_view general, std::string_view special, pattern_text kind);
  /// Whether some text may match both; yes when it is not sure. As `plain`.
  bool may_meet(std::string_view a, std::string_view b);

 private:
  std::size_t steps_;
};

} // namespace boyd::config
