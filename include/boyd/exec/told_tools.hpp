#pragma once

#include "boyd/context/citation.hpp"
#include "boyd/exec/cli_reader.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What the tools of an agent's own program read, as far as its events tell (docs/context.md).
/// Pure.
namespace boyd::exec {

/// Where a program works, and where the items are that it was shown.
struct tool_places {
  std::string directory; ///< its paths begin here; absolute
  std::string root;      ///< the paths of items begin here; absolute, or empty
  std::string scope;     ///< of the ids of what can be cited
};

/// What one use of a tool read.
struct tool_reading {
  std::string call;                       ///< the tool and its arguments: Read {"path":"a.md"}
  std::vector<std::string> paths;         ///< that it read, wrote or named, as items have them
  std::vector<context::citable> citables; ///< without keys
};

/// Of one that failed nothing but the call. A file is compared with the answer; the output of a
/// command and a page are not, but may be cited, as may the files that a command names.
tool_reading reading_of(const told_tool& tool, const tool_places& where);

/// The path as it begins at `root`, where it lies below; else as it is.
std::string path_below(std::string_view root, const std::string& path);

} // namespace boyd::exec
