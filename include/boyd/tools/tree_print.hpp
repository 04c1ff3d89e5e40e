#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/tools/file_prints.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What a whole workspace was when somebody looked: a command may read any of it.
namespace boyd::tools {

/// Bounds of one look: files, links and directories, and bytes of all files.
inline constexpr std::size_t most_tree_entries = 20'000;
inline constexpr std::uint64_t tree_bytes = all_print_bytes;

struct tree_options {
  /// Globs of paths below the workspace that do not count, such as `build/**`.
  std::vector<std::string> unbound;
  /// Paths that Boyd itself writes, and agents cannot: they do not count.
  std::vector<std::string> own;
  /// What of a file's content counts; null: all of it.
  std::function<std::string(std::string_view where, std::string content)> part;
};

struct tree_print {
  /// Of each file its content, of each link where in the workspace it leads; sorted by path.
  std::vector<file_print> prints;
  std::uint64_t bytes = 0;
  std::string too_much;             ///< which bound was met: `prints` are not all; empty: none
  std::vector<std::string> outside; ///< links that lead out, and what may not be looked at
};

/// Looks at everything below `workspace` (absolute); links are told, not followed. Of a git
/// directory the objects and logs are left out: what refers to them counts. An error of the disk.
/// Blocking: call from a worker. Threads: any.
result<tree_print> look_at_tree(confined_files& inside, const std::string& workspace,
                                const tree_options& options);

/// Paths that are only in one of two looks, or differ, sorted.
std::vector<std::string> changed_paths(const std::vector<file_print>& then,
                                       const std::vector<file_print>& now);

} // namespace boyd::tools
