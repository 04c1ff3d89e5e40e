#pragma once

#include "boyd/core/result.hpp"
#include "boyd/tools/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace boyd::tools {

/// The largest arguments text of one call, bytes; a file that is written is part of it. A model
/// that sends more is told so, and what it sent does not go back to it.
inline constexpr std::size_t argument_bytes = 256u << 10;
inline constexpr std::uint64_t most_number = std::uint64_t{1} << 40;
inline constexpr std::uint64_t most_lines = 100'000;
inline constexpr std::uint64_t most_command_seconds = 3600;
inline constexpr std::size_t query_bytes = 1000;
inline constexpr std::size_t pattern_bytes = 200;
inline constexpr std::size_t section_bytes = 500;
inline constexpr std::size_t skill_name_bytes = 64;
inline constexpr std::size_t entry_bytes = 16u << 10;
inline constexpr std::uint64_t most_recall_tokens = 16'000;
inline constexpr std::size_t command_arguments = 1000;
/// Of a shell's line, or of all arguments together: less than one argument may have (128 KiB).
inline constexpr std::size_t command_bytes = 100u << 10;

/// Where spilled results can be read: `@results/<name>` as a path of read_file.
inline constexpr std::string_view results_prefix = "@results/";

struct read_file_call {
  std::string path;
  std::uint64_t offset = 1;      ///< first line, from 1
  std::uint64_t limit = 2000;    ///< lines
  std::uint64_t byte_offset = 0; ///< not 0: begin there, and `offset` is not used
  bool line_numbers = false;

  bool operator==(const read_file_call&) const = default;
};

struct write_file_call {
  std::string path;
  std::string content;

  bool operator==(const write_file_call&) const = default;
};

struct list_dir_call {
  std::string path = ".";

  bool operator==(const list_dir_call&) const = default;
};

struct search_text_call {
  static constexpr std::size_t most_matches = 500;
  std::string query;
  std::string path = ".";
  std::string files; ///< a pattern; empty: all
  bool ignore_case = false;

  bool operator==(const search_text_call&) const = default;
};

struct run_command_call {
  std::vector<std::string> argv; ///< empty: `command` is given
  std::string command;           ///< for /bin/sh -c
  std::string cwd = ".";
  std::uint64_t timeout_seconds = 120;

  bool operator==(const run_command_call&) const = default;
};

/// An entry of the kernel's memory.
struct remember_call {
  std::string section;
  std::string text;

  bool operator==(const remember_call&) const = default;
};

/// A question to the kernel's memory.
struct recall_call {
  std::string query;
  std::uint64_t budget_tokens = 1000;

  bool operator==(const recall_call&) const = default;
};

/// The whole text of a skill.
struct read_skill_call {
  std::string name;

  bool operator==(const read_skill_call&) const = default;
};

/// A call that touches files alone; `perform` does it.
using file_call = std::variant<read_file_call, write_file_call, list_dir_call, search_text_call>;

/// A call of a built-in tool, read and checked.
using tool_call =
    std::variant<file_call, run_command_call, remember_call, recall_call, read_skill_call>;

/// Whether an answer is a call of a tool that was written as text: a model's own mark of one, or
/// one JSON object with a name and arguments. Any bytes.
bool looks_like_call(std::string_view text);

/// Reads what a model sent: any bytes. The error's text is for the model: it says which argument is
/// wrong and what was expected. An empty text and `null` count as no arguments.
result<tool_call> read_call(std::string_view tool, std::string_view arguments_json);

/// What the policy is asked about; an error for a path that leads out of `workspace` (absolute).
result<action> action_of(const tool_call& call, const std::string& workspace);

} // namespace boyd::tools
