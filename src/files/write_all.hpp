#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <string>
#include <string_view>

namespace boyd::files {

/// Writes every byte or fails. A write that takes nothing counts as a full disk; so each round
/// makes progress and the loop ends.
inline result<void> write_all(open_file& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    auto written = file.write(bytes);
    if (!written) {
      return fail(std::move(written.error()));
    }
    if (*written == 0) {
      return fail(errc::no_space, "the disk is full", path, "free some space");
    }
    bytes.remove_prefix(*written < bytes.size() ? *written : bytes.size());
  }
  return {};
}

} // namespace boyd::files
