#pragma once

#include "boyd/ports/confined_files.hpp"
#include "confinement.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd::adapters {

/// What one name is; links are not followed.
struct entry_info {
  file_kind kind = file_kind::missing;
  std::uint64_t size = 0;
};
/// An empty name: `directory` itself.
entry_info info_of(int directory, const std::string& name);

/// Sorted, without "." and "..". `limit_exceeded` for a directory that nobody can look through.
result<std::vector<std::string>> names_in(int directory);

/// confined_files::walk from a place that was opened.
result<confined_files::walk_end> walk_confined(const confinement& guard,
                                               const confined_place& start,
                                               const confined_files::walk_limits& limits,
                                               const confined_files::wanted_file& wanted,
                                               const confined_files::visit_file& visit);

} // namespace boyd::adapters
