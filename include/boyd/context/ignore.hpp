#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boyd::context {

/// Patterns of `.gitignore` files (gitignore(5)): comments, `!`, a slash at the end for
/// directories, a slash elsewhere for paths from the file's own directory, `*`, `?`, `[a-z]`, `**`.
/// Paths are relative to the root, without "." and "..".
class ignore_rules {
 public:
  /// The text of the file in `directory` (empty: the root). Directories come from the root down:
  /// the last pattern that fits decides.
  void add(std::string_view directory, std::string_view text);

  /// Of a path whose directories are not ignored.
  bool ignores(std::string_view path, bool is_directory) const;

 private:
  struct rule {
    std::string directory; ///< empty, or with a slash at its end
    std::string pattern;
    bool negated = false;
    bool directories_only = false;
    bool anchored = false; ///< fits the whole path below `directory`; else the last part of it
  };

  std::vector<rule> rules_;
};

} // namespace boyd::context
