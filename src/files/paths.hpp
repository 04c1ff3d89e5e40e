#pragma once

#include <string>

namespace boyd::files {

/// The directory that holds the absolute `path`; "/" for a file of the root.
inline std::string parent_directory(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return "/";
  }
  return path.substr(0, slash);
}

/// The last component of `path`.
inline std::string base_name(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// `directory/name`.
inline std::string join_path(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.back() == '/' ? directory + name : directory + "/" + name;
}

} // namespace boyd::files
