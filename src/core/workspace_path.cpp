#include "boyd/core/workspace_path.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace boyd {

namespace {

using namespace std::string_view_literals;

/// HFS+ ignores these in names: U+200C–200F, U+202A–202E, U+206A–206F, U+FEFF (git's utf8.c has the
/// same list). Each is three bytes of UTF-8.
constexpr std::size_t ignorable_bytes = 3;

bool is_ignorable(std::string_view three) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(three[i]); };
  if (three.size() < ignorable_bytes)
    return false;
  if (byte(0) == 0xEF)
    return byte(1) == 0xBB && byte(2) == 0xBF;
  if (byte(0) != 0xE2)
    return false;
  if (byte(1) == 0x80)
    return (byte(2) >= 0x8C && byte(2) <= 0x8F) || (byte(2) >= 0xAA && byte(2) <= 0xAE);
  return byte(1) == 0x81 && byte(2) >= 0xAA && byte(2) <= 0xAF;
}

char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// A name that git reads by itself and why an agent must not write it.
struct git_name {
  std::string_view name;
  std::string_view short_name; ///< the first six letters of its 8.3 name on NTFS
  std::string_view hashed;     ///< the beginning of the 8.3 name after the first four are taken
  std::string_view why;
};
constexpr std::array git_names{
    git_name{".gitattributes"sv, "gitatt"sv, "gi7d29"sv, "this file can make git run programs"sv},
    git_name{".gitmodules"sv, "gitmod"sv, "gi7eba"sv, "this file tells git where to fetch code"sv},
    git_name{".gitconfig"sv, "gitcon"sv, {}, "this file configures git and can run programs"sv},
};

constexpr std::size_t short_name_size = 8;

/// Whether NTFS could give a file called `g.name` the 8.3 name `folded`.
bool is_short_name(std::string_view folded, const git_name& g) {
  const auto tilde = folded.find('~');
  if (tilde == std::string_view::npos)
    return false;
  const auto head = folded.substr(0, tilde);
  const auto digits = folded.substr(tilde + 1);
  if (digits.empty() || digits.front() == '0' ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return false;
  if (head == g.short_name)
    return digits.size() == 1 && digits.front() <= '4';
  return folded.size() == short_name_size && !head.empty() && g.hashed.starts_with(head);
}

/// Parts as any file system could see them: for NTFS a backslash separates, too.
std::vector<std::string_view> all_parts(std::string_view relative) {
  std::vector<std::string_view> parts;
  for (const auto part : split(relative, '/'))
    for (const auto piece : split(part, '\\'))
      parts.push_back(piece);
  return parts;
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

/// Of kernel/<kernel_id>/, as `folded_name` gives them.
constexpr std::array nodes_own_files{"state.md"sv, "init.md"sv, "system_prompt.md"sv};

std::optional<std::string> why_kernel_forbids(const std::vector<std::string_view>& parts) {
  const std::string first = folded_name(parts[2]);
  if (first == "archive")
    return "archive/ is the archive, which agents cannot change";
  if (first == "context")
    return "context/ is the list of context for agents; only boyd context changes it";
  if (parts.size() > 3)
    return std::nullopt;
  for (const auto own : nodes_own_files)
    if (first == own)
      return std::string(parts[2]) + " is written only by the node";
  if (first.ends_with(".bak") || first.find(".boyd-tmp-") != std::string::npos)
    return "this name is reserved for Boyd's copies";
  return std::nullopt;
}

} // namespace

result<std::string> workspace_path(std::string_view root, std::string_view path) {
  const auto refused = [&](std::string why) {
    return fail(errc::refused, std::move(why), sanitize_utf8(path),
                "use a path relative to the workspace");
  };
  if (path.empty())
    return fail(errc::invalid_argument, "the path is empty", {}, "\".\" is the workspace itself");
  if (path.size() > workspace_path_bytes)
    return fail(errc::invalid_argument,
                "the path is longer than " + std::to_string(workspace_path_bytes) + " bytes");
  if (path.find('\0') != std::string_view::npos)
    return refused("the path contains a NUL");
  if (path.front() == '/') {
    while (root.size() > 1 && root.back() == '/')
      root.remove_suffix(1);
    const auto base = root == "/" ? ""sv : root;
    if (!path.starts_with(base) || (path.size() > base.size() && path[base.size()] != '/'))
      return refused("the path leads out of the workspace");
    path.remove_prefix(base.size());
  }
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".")
      continue;
    if (part != "..") {
      parts.push_back(part);
      continue;
    }
    if (parts.empty())
      return refused("the path leads out of the workspace");
    parts.pop_back();
  }
  std::string clean;
  for (const auto part : parts)
    clean.append(clean.empty() ? "" : "/").append(part);
  return clean.empty() ? std::string(".") : clean;
}

std::string folded_name(std::string_view part) {
  std::string folded;
  while (!part.empty() && part.front() != ':') {
    if (is_ignorable(part.substr(0, ignorable_bytes))) {
      part.remove_prefix(ignorable_bytes);
      continue;
    }
    folded += small(part.front());
    part.remove_prefix(1);
  }
  while (!folded.empty() && (folded.back() == ' ' || folded.back() == '.'))
    folded.pop_back();
  return folded;
}

bool is_git_directory(std::string_view part) {
  const auto folded = folded_name(part);
  return folded == ".git" || folded == "git~1";
}

std::optional<std::string> why_unwritable(std::string_view relative) {
  if (has_control_character(relative))
    return "the name contains a control character";
  for (const auto part : all_parts(relative)) {
    if (is_git_directory(part))
      return "agents cannot write in .git, whose hooks and configuration can run programs";
    const auto folded = folded_name(part);
    for (const auto& g : git_names)
      if (folded == g.name || is_short_name(folded, g))
        return std::string(g.name) + ": " + std::string(g.why);
  }
  return std::nullopt;
}

std::optional<std::string> why_home_forbids(std::string_view relative, file_use use) {
  const auto parts = split(relative, '/');
  if (use == file_use::read) {
    constexpr std::array readable{"."sv,         "kernel"sv,  "executions"sv,
                                  "knowledge"sv, "context"sv, "skills"sv};
    // Copies of somebody's repository, in which runs work.
    constexpr std::size_t in_a_worktree = 3; // run/worktrees/<run>
    const bool is_in_worktree =
        parts.size() >= in_a_worktree && parts[0] == "run" && parts[1] == "worktrees";
    if (is_in_worktree || std::ranges::find(readable, parts.front()) != readable.end())
      return std::nullopt;
    return "this is one of the node's own files, which may contain secrets";
  }
  constexpr std::size_t in_a_kernel = 3; // kernel/<kernel_id>/<name>…
  if (parts.front() == "kernel" && parts.size() >= in_a_kernel)
    return why_kernel_forbids(parts);
  return "this is one of the node's own files";
}

} // namespace boyd
