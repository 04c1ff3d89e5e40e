#pragma once

#include <string>
#include <vector>

namespace boyd::adapters {

/// Gives the calling process mounts of its own, in which these paths (missing ones left out) are
/// read-only and cannot be renamed or removed. As an ordinary user it also gets a namespace of
/// users, in which it is who it is. The working directory stays where it is, through the new
/// mounts. 0, or an errno. Nothing is done for paths that are not there. For a freshly forked
/// process with one thread, before Landlock, which allows no mounts.
int mount_read_only(const std::vector<std::string>& paths);

/// Whether mount_read_only works on this machine, tried in a process of its own. Threads: any.
bool can_have_own_mounts();

} // namespace boyd::adapters
