#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of files below a workspace, as far as names alone can say what may become of them.
namespace boyd {

/// The longest path taken from an agent, bytes (PATH_MAX without its NUL).
inline constexpr std::size_t workspace_path_bytes = 4095;

/// `path` without ".", "..", empty parts and a slash at the end, relative to `root`; "." for the
/// root itself. An absolute one is taken when it begins with `root` (absolute, as it is written).
/// ".." is resolved by the names alone: whoever opens the outcome opens what was checked. `refused`
/// for what leads out of the root or holds a NUL, `invalid_argument` when empty or too long.
result<std::string> workspace_path(std::string_view root, std::string_view path);

/// One part of a path as the least careful file system reads it: ASCII letters small, without the
/// code points that HFS+ ignores, without the stream, spaces and dots at the end that NTFS ignores.
/// The same rules as in `git fsck`.
std::string folded_name(std::string_view part);

/// Whether git takes `part` for its own directory on some file system: .git, .GIT, ".git ", git~1,
/// .git::$INDEX_ALLOCATION, …
bool is_git_directory(std::string_view part);

/// Why nothing may be written at `relative` (from `workspace_path`), whatever the workspace; empty
/// optional: names do not forbid it. In any part of the path:
///  - .git: hooks and configuration in it run programs;
///  - .gitattributes: names filters and drivers, which are programs;
///  - .gitmodules: tells git where to fetch code from;
///  - .gitconfig: git's personal configuration, where the workspace is somebody's home;
///  - a control character: it would lie in listings and logs.
std::optional<std::string> why_unwritable(std::string_view relative);

enum class file_use : std::uint8_t { read, write };

/// Why an agent's tools may not touch `relative`, a path relative to the node's home ("." is the
/// home itself); empty optional: they may. Secrets, locks and records are Boyd's: read are only
/// kernel/, executions/, knowledge/, context/ and skills/; written only kernel/<kernel_id>/ — the
/// objective (GOAL.md), identity, memory, notes, research, whatever agents put there — without
/// STATE.md, INIT.md and SYSTEM_PROMPT.md, which the node writes, without archive/, which is never
/// rewritten, without context/, which says what agents are given to read, and without the copies
/// and temporary files of what the node writes.
std::optional<std::string> why_home_forbids(std::string_view relative, file_use use);

} // namespace boyd
