#pragma once

#include "../unique_fd.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/workspace_path.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// Something that was opened below a workspace and stays what it is, whatever becomes of its path.
struct confined_place {
  unique_fd fd;         ///< O_PATH
  std::string absolute; ///< without links
  std::string where;    ///< relative to the workspace, without links; "." is the workspace
};

/// Where a file is about to be written.
struct confined_target {
  confined_place parent;
  std::string name;
};

/// Opens what lies below a workspace and nothing else. Paths are as `workspace_path` gives them;
/// errors speak of the place only, the caller sets `where`. Threads: any.
class confinement {
 public:
  confinement(std::string home, bool without_openat2);

  /// Follows links that stay inside.
  result<confined_place> open(const std::string& root, const std::string& path) const;

  /// Follows no link; makes the directories that are missing.
  result<confined_target> open_for_writing(const std::string& root, const std::string& path) const;

  /// Why what lies at an absolute path without links is out of reach; empty optional: it is not.
  std::optional<std::string> why_forbidden(std::string_view absolute, file_use use) const;

 private:
  result<confined_place> open_once(const std::string& root, const std::string& path) const;
  result<confined_place> open_root(const std::string& root) const;
  result<unique_fd> open_beneath(int root, const std::string& path) const;
  result<void> check(std::string_view absolute, file_use use) const;

  std::string home_;
  bool has_openat2_ = false;
};

/// The path of what `fd` is, without links, by /proc; `conflict` when it has none any more.
result<std::string> path_of(int fd);

/// `absolute` relative to `base`, both without links; empty optional: it is not below it.
std::optional<std::string> relative_to(std::string_view base, std::string_view absolute);

/// `where` with `name` after it.
std::string joined(std::string_view where, std::string_view name);

} // namespace boyd::adapters
