#pragma once

#include "boyd/core/result.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::adapters::git {

/// Extensions of a repository's format (small letters) under which libgit2 reads and writes
/// correctly though it does not know them; its own list knows "noop" and "objectformat".
inline constexpr std::array<std::string_view, 4> readable_extensions{
    "worktreeconfig", "preciousobjects", "partialclone", "relativeworktrees"};

/// Whether libgit2 may work in `git_dir`: each name below it that the node reads or writes is a
/// directory or a regular file, and the repository's format is one that can be read. A link there
/// would lead what the node writes to another place, and a pipe would hold it up for ever. Agents
/// may have had write access, so it is asked before every use; only the sandbox keeps away a
/// program that changes `git_dir` between the question and the use. A `git_dir` that is missing is
/// in order. `repository_unavailable`, with what to do.
result<void> check_inside(const std::string& git_dir);

/// The last `most` bytes of a regular file, never through a link; nothing when there is none.
std::optional<std::string> end_of_file(const std::string& path, std::size_t most);

} // namespace boyd::adapters::git
