#pragma once

#include "boyd/core/sandbox.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace boyd::adapters {

/// Entries of one directory that are granted one by one because something beside them is hidden;
/// more of them stay closed.
inline constexpr std::size_t granted_entries = 8192;

/// Where the kernel shows how it works and takes settings: written by no program in a sandbox,
/// root's neither, whatever a configuration grants.
inline constexpr std::array kernel_settings{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
                                            "/proc/bus", "/proc/acpi",          "/proc/scsi",
                                            "/sys"};

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

/// `path` of a list of the spec, resolved: empty when it is not there, or when its links lead into
/// something hidden that the list does not name itself.
std::string granted_path(const sandbox_spec& spec, const std::string& path);

/// `path` without symbolic links; empty when it is not there.
std::string real_path(const std::string& path);

/// Whether `path` is `above` or lies in it; both without trailing slashes.
bool is_within(const std::string& path, const std::string& above);

} // namespace boyd::adapters
