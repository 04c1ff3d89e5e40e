#pragma once

#include "adapters/posix/home_archive.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::app {

/// Where an archive has the home's files.
inline constexpr const char* home_in_archive = "home";
/// The last entry of an archive: what the others are.
inline constexpr const char* manifest_in_archive = "manifest.json";

/// What a backup says of itself.
struct backup_manifest {
  std::string version; ///< of the program that made it
  std::string home;    ///< where it was
  utc_time made_at{};
  std::vector<adapters::archived_file> files; ///< all but the manifest
};

/// `boyd.backup_manifest/1`.
std::string to_json(const backup_manifest& m);
/// Error `corrupt` for what is none.
result<backup_manifest> read_manifest(std::string_view json);

} // namespace boyd::app
