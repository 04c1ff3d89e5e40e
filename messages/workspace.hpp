#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/file_prints.hpp"
#include "boyd/tools/perform.hpp"
#include "boyd/tools/result_text.hpp"
#include "boyd/tools/tree_print.hpp"
#include "messages/message.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace boyd {

/// Writes a private file that an executor reads (a prompt file).
struct write_private_file {
  std::string path;
  std::string text;
};

/// Replaces a private file of the node so that after any crash it holds the old text or the new
/// one; durable when it answers.
struct write_durable_file {
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
  /// A directory above it in which agents write: no link below it is followed. Empty: a path that
  /// a person named, whose links are.
  std::string below{};
};

/// Reads and checks the configuration file again (node_context::parse_configuration), with the
/// files that it names: schemas, keys.
struct read_configuration {
  std::string path;
};

/// Adds lines to a private file, durably; makes it and its directory.
struct append_record {
  std::string path;
  std::string text;
};

/// A result of a tool that may be too long for its model (tools::fit_result).
struct keep_result {
  std::string text;
  bool is_error = false;
  tools::result_place place;
};

/// One hash over the contents of files and directories (sorted, bounded).
struct hash_inputs {
  std::vector<std::string> paths;
};

/// A call of a file tool that was let through (tools::perform). Done by workers of its own, so that
/// a mount that hangs in one workspace holds up neither other requests nor most other workspaces.
struct run_tool {
  tools::file_call call;
  std::string workspace; ///< absolute
  tools::permission permission;
  tools::result_place place;
  /// Set once the run that asked is over: the call is not begun any more, for the run's work may be
  /// somebody else's by then. Null: nobody takes it back.
  std::shared_ptr<const std::atomic<bool>> over{};
};

/// What stands at paths of a workspace that an action is about to meet (tools::look_at_files). Done
/// by the workers of run_tool.
struct look_at_workspace {
  std::string workspace; ///< absolute
  std::vector<std::string> paths;
  /// Also everything below it (tools::look_at_tree), but for what matches these globs.
  std::optional<std::vector<std::string>> tree_without{};
};

/// File work on behalf of agents, apart from the state files, so that a slow mount in somebody's
/// workspace never delays STATE.md.
struct workspace_request : message {
  std::variant<write_private_file, write_durable_file, remove_file, inspect_files, read_text_file,
               hash_inputs, append_record, run_tool, look_at_workspace, keep_result,
               read_configuration>
      what;
  request_end until = request_end::max();
};

struct workspace_reply {
  std::vector<file_info> files;
  std::string text;            ///< content or hash
  tools::tool_outcome outcome; ///< of run_tool and keep_result
  std::vector<tools::file_print> prints;
  std::optional<tools::tree_print> tree; ///< of look_at_workspace, when it was asked for
  /// Of read_configuration: valid, or why it is not. The reply itself is an error only when the
  /// file cannot be read.
  result<std::shared_ptr<const config::configuration>> configuration = nullptr;
};

} // namespace boyd
