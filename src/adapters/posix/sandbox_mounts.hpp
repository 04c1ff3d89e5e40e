#pragma once

#include <string>
#include <vector>

namespace boyd::adapters {

/// Gives the calling process mounts of its own, in which all is read-only but `writable`, and of
/// that `read_only` is, too, and cannot be renamed or removed: also for calls that Landlock does
/// not know (chmod, chown, utimes, extended attributes). Paths are free of links; missing ones are
/// left out. As an ordinary user it also gets a namespace of users, in which it is who it is. The
/// working directory stays where it is, through the new mounts. 0, or an errno. For a freshly
/// forked process with one thread, before Landlock, which allows no mounts.
int mount_apart(const std::vector<std::string>& writable,
                const std::vector<std::string>& read_only);

/// Whether mount_apart works on this machine, tried in a process of its own. Threads: any.
bool can_have_own_mounts();

} // namespace boyd::adapters
