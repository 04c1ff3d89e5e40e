#pragma once

#include "boyd/context/reading.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace boyd::context {

/// How a directory is read.
struct directory_rules {
  const std::string& root;
  const reading_limits& limits;
  /// The text of a file, by its path from the root; an error says why it is not read.
  std::function<result<std::string>(const std::string& path, std::size_t most)> text_of;
  /// Why a directory is not looked into; empty optional: it is.
  std::function<std::optional<std::string>(const std::string& path)> closed;
};

struct directory_content {
  struct file {
    std::string path; ///< from the root
    std::string text;
  };
  std::string listing; ///< one line for each entry, with what is not read and why
  std::vector<file> files;
};

/// What is in `directory` (relative to the root, without links): directories in the order of their
/// names, without links, git's own directories and what `.gitignore` files below the root name.
directory_content look_into(const directory_rules& rules, const std::string& directory,
                            confined_files& files);

} // namespace boyd::context
