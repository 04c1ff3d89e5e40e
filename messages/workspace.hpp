#pragma once

#include "boyd/ports/file_system.hpp"
#include "messages/message.hpp"

#include <string>
#include <variant>
#include <vector>

namespace boyd {

/// Writes a private file that an executor reads (a prompt file).
struct write_private_file {
  std::string path;
  std::string text;
};

struct remove_file {
  std::string path;
};

/// What a requirement needs to know of files: one answer per path.
struct inspect_files {
  std::vector<std::string> paths;
};

struct read_text_file {
  std::string path;
  std::size_t max_bytes = 1u << 20;
};

/// Adds lines to a private file, durably; makes it and its directory.
struct append_record {
  std::string path;
  std::string text;
};

/// One hash over the contents of files and directories (sorted, bounded).
struct hash_inputs {
  std::vector<std::string> paths;
};

/// File work on behalf of agents, apart from the state files, so that a slow mount in somebody's
/// workspace never delays STATE.md.
struct workspace_request : message {
  std::variant<write_private_file, remove_file, inspect_files, read_text_file, hash_inputs,
               append_record>
      what;
};

struct workspace_reply {
  std::vector<file_info> files;
  std::string text; ///< content or hash
};

} // namespace boyd
