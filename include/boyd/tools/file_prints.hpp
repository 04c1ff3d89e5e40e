#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/confined_files.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What files were when somebody looked, so that a later look tells whether they still are.
namespace boyd::tools {

/// Of one file, and of all of one look, bytes; what is larger is known by its size alone.
inline constexpr auto print_bytes = confined_files::compared_bytes;
inline constexpr std::uint64_t all_print_bytes = std::uint64_t{256} << 20;
/// Paths of one look.
inline constexpr std::size_t most_prints = 10'000;

struct file_print {
  std::string path; ///< as it was asked for
  /// "sha256:HEX" of a regular file's content, "size:BYTES" where that is too much, "missing",
  /// "closed" for what cannot be reached in the workspace, "other" for what is no regular file.
  std::string state;

  bool operator==(const file_print&) const = default;
};

/// Looks at regular files below `workspace` (absolute), and at nothing that its paths lead to
/// outside. `limit_exceeded` for more than most_prints paths; an error of the disk. Blocking: call
/// from a worker. Threads: any.
result<std::vector<file_print>> look_at_files(confined_files& inside, const std::string& workspace,
                                              const std::vector<std::string>& paths);

/// SHA-256 of all of them; empty for none.
std::string hash_of(const std::vector<file_print>& prints);

/// For permission::before: the content's hash, or empty when nothing was there. A state that is
/// neither is given as it is, and equals no content.
std::string content_hash(const file_print& print);

} // namespace boyd::tools
