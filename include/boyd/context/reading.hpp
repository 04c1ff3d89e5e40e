#pragma once

#include "boyd/context/block.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/repository.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace boyd::context {

/// The most that references may bring in.
struct reading_limits {
  std::size_t file_bytes = std::size_t{1} << 20;
  std::size_t directory_files = 200; ///< of one directory, whose text is read
  std::size_t directory_depth = 8;
  std::size_t directory_bytes = std::size_t{256} << 10; ///< of their text, together
  std::size_t listed_entries = 2000; ///< of one directory; the others are counted
  std::size_t items = 2000;          ///< of one run
};

/// What is read, and by what rules.
struct reading_order {
  std::string root;  ///< the workspace, absolute
  std::string scope; ///< of the items' ids; empty: the repository's, else by the root's real path
  std::vector<wanted> references;
  /// Why the agent's policy does not let `tool` have `where` (relative to the root); empty
  /// optional: it does. Asked of the path as it was named, and of what links lead to.
  std::function<std::optional<std::string>(const std::string& tool, const std::string& where)>
      forbids;
  /// Takes secrets out of a text.
  std::function<std::string(std::string text)> hide;
  /// The repository that a directory (absolute, without links) belongs to; may be null.
  std::function<std::optional<git_project>(const std::string& absolute)> project_of;
  /// When a file was changed last; by its absolute path without links.
  std::function<utc_time(const std::string& absolute)> changed;
  reading_limits limits;
};

/// "dir:" and the hash of a real path: the scope of a workspace that is in no repository and no
/// kernel's home.
std::string scope_of(const std::string& real_path);
/// "repo:" and its root commit: the same for all clones and worktrees.
std::string scope_of(const git_project& project);
std::string scope_of_kernel(const std::string& kernel_id);

/// Reads files and directories below the root, in the order of the references, each id once (what
/// is required of it stays required). A directory is its listing, and each of its text files an
/// item of its own, without what `.gitignore` files below the root name; what is passed over is in
/// the listing, with the reason. A reference that cannot be read is an item with the reason.
/// Commands become items of type `runtime` without content: their output is the caller's to get.
/// Blocking, as the port is: call from workers only.
std::vector<offered_item> read_references(const reading_order& order, confined_files& files);

/// Fills in the output of a command.
void take_output(offered_item& item, std::string output, utc_time now);

/// What became of one candidate of a text.
struct candidate_fate {
  candidate found;
  bool counts = false; ///< it is a reference
  std::string why;     ///< why not; of one that counts and cannot be read, why that is
};

/// Which of the candidates of `text` count as references below the root.
std::vector<candidate_fate> judge_candidates(std::string_view text, const reading_order& order,
                                             confined_files& files);

} // namespace boyd::context
