#pragma once

#include <string_view>

namespace boyd::adapters::git {

/// Whether git takes no file of this path, relative to the work tree: a part of it is empty, "." or
/// "..", or is ".git" for one of the file systems that a clone may lie on (NTFS and HFS+, whatever
/// core.protectNTFS and core.protectHFS say, for `git fsck` asks both). `link`: the file is a
/// symbolic link, of which git refuses .gitmodules as well.
bool is_refused_path(std::string_view path, bool link);

} // namespace boyd::adapters::git
