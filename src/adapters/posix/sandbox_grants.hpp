#pragma once

#include "boyd/core/sandbox.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace boyd::adapters {

/// Entries of one directory that are granted one by one because something beside them is hidden;
/// more of them stay closed.
inline constexpr std::size_t granted_entries = 8192;

/// One path that a sandbox opens, free of symbolic links.
struct sandbox_grant {
  std::string path;
  bool writable = false;
};

/// What a spec's lists come to on this machine now: paths resolved, missing ones left out, and a
/// directory with something hidden in it replaced by what lies beside that. Symbolic links found
/// there are not followed: whoever made them may have been in the sandbox. For a process with one
/// thread; blocking.
std::vector<sandbox_grant> grants_of(const sandbox_spec& spec);

/// `path` without symbolic links; empty when it is not there.
std::string real_path(const std::string& path);

/// Whether `path` is `above` or lies in it; both without trailing slashes.
bool is_within(const std::string& path, const std::string& above);

} // namespace boyd::adapters
