#pragma once

#include <cstdint>

namespace boyd::adapters {

/// The soft limit of open files (RLIMIT_NOFILE).
struct open_files_limit {
  std::uint64_t before = 0; ///< what the process was started with
  std::uint64_t now = 0;
};

/// Raises this process's soft limit to its hard one. A node needs a descriptor for each call of a
/// model and three for each program; the usual 1024 are for programs that use select.
open_files_limit raise_open_files() noexcept;

} // namespace boyd::adapters
