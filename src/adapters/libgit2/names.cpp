#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "names_internal.hpp"

#include <algorithm>
#include <string>

namespace boyd::adapters::git {

namespace {

/// A link called .gitmodules, in any of its forms, is refused by git's own checks.
bool is_modules_file(std::string_view name) {
  const auto folded = folded_name(name);
  return folded == ".gitmodules" || folded.starts_with("gitmod~") || folded.starts_with("gi7eba~");
}

} // namespace

bool is_refused_path(std::string_view path, bool link) {
  if (path.empty() || path.find('\0') != std::string_view::npos)
    return true;
  const auto last = path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1;
  const auto pieces = split(path.substr(last), '\\');
  if (link && std::ranges::any_of(pieces, is_modules_file))
    return true;
  return std::ranges::any_of(split(path, '/'), [](std::string_view name) {
    return name.empty() || name == "." || name == ".." ||
           std::ranges::any_of(split(name, '\\'), is_git_directory);
  });
}

} // namespace boyd::adapters::git
