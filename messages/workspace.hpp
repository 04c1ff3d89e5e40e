#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/context/reading.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/record/execution.hpp"
#include "boyd/record/explain.hpp"
#include "boyd/record/replay.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/file_prints.hpp"
#include "boyd/tools/perform.hpp"
#include "boyd/tools/result_text.hpp"
#include "boyd/tools/tree_print.hpp"
#include "messages/message.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
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

/// Reads the items that a run refers to (context::read_references), or with `text` says which of
/// its candidates are references (context::judge_candidates). Done by the workers of run_tool.
struct read_items {
  std::string workspace; ///< absolute
  std::string scope;     ///< context::reading_order::scope
  std::vector<context::wanted> references;
  config::action_policy policy; ///< what it denies, or asks a person about, is not read
  std::vector<std::string> secrets;
  std::optional<std::string> text{};
};

/// Puts an attempt on record before it begins: its contents by their hash, then
/// executions/<dispatch_id>/record.json (record::begin_attempt). Durable when it answers, or
/// without `durable` safe from everything but a power cut.
struct begin_record {
  std::string dispatch_id;
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  record::attempt begun;
  std::vector<std::string> contents;
  bool durable = true;
};

/// Puts its turns so far on record, with the contents that they name (record::go_on).
struct update_record {
  std::string dispatch_id;
  std::int64_t fence = 0;
  std::vector<record::turn> turns;
  std::vector<std::string> contents;
  bool durable = true;
};

/// Puts its end on record (record::end_attempt), contents that its turns name, and beside a durable
/// one its explanation. An attempt that is not on record yet is begun as `begun` says.
struct end_record {
  begin_record begun;
  record::attempt_end end;
  std::vector<std::string> contents;
};

/// Adds to records what the log of facts has of their executions (record::add_facts), and explains
/// them anew. An execution without a record has none afterwards either.
struct add_evidence {
  std::vector<record::execution_facts> executions;
};

/// The explanation of an execution (record::explain), and its record as it stands. Done by the
/// workers of run_tool, as are replays: long ones hold up no run.
struct explain_execution {
  std::string dispatch_id;
  record::explain_options options;
};

/// What becomes of an execution when it is put together again from what is kept (record::replay).
struct replay_execution {
  std::string dispatch_id;
};

/// Which executions have left something that nobody has changed since `before`: their ids, in
/// order, those behind `after`.
struct list_executions {
  std::string after;
  std::size_t limit = 0;
  utc_time before{};
};

/// Removes what executions have left; what is gone already is no error.
struct remove_executions {
  std::vector<std::string> ids;
};

/// The hashes of contents that the records of these executions name; `text`: why one cannot be
/// read.
struct named_contents {
  std::vector<std::string> ids;
};

/// Contents of one folder of context/objects that no record names and that nobody has written since
/// `before`: they are removed, or with `dry_run` counted.
struct sweep_contents {
  unsigned folder = 0; ///< 0 to 255
  std::shared_ptr<const std::unordered_set<std::string>> kept;
  utc_time before{};
  bool dry_run = false;
};

/// File work on behalf of agents, apart from the state files, so that a slow mount in somebody's
/// workspace never delays STATE.md.
struct workspace_request : message {
  std::variant<write_private_file, write_durable_file, remove_file, inspect_files, read_text_file,
               hash_inputs, append_record, run_tool, look_at_workspace, keep_result,
               read_configuration, read_items, begin_record, update_record, end_record,
               add_evidence, explain_execution, replay_execution, list_executions,
               remove_executions, named_contents, sweep_contents>
      what;
  request_end until = request_end::max();
};

struct workspace_reply {
  std::vector<file_info> files;
  std::string text;            ///< content or hash
  tools::tool_outcome outcome; ///< of run_tool and keep_result
  std::vector<tools::file_print> prints;
  std::optional<tools::tree_print> tree;       ///< of look_at_workspace, when it was asked for
  std::vector<context::offered_item> items;    ///< of read_items
  std::vector<context::candidate_fate> fates;  ///< of read_items with a text
  std::vector<std::string> names;              ///< ids, or hashes
  std::string record;                          ///< of explain_execution and replay_execution
  std::optional<record::replay_report> replay; ///< of replay_execution
  std::uint64_t removed = 0; ///< files; of sweep_contents with `dry_run`, would be
  std::uint64_t bytes = 0;   ///< of them
  /// Of read_configuration: valid, or why it is not. The reply itself is an error only when the
  /// file cannot be read.
  result<std::shared_ptr<const config::configuration>> configuration = nullptr;
};

} // namespace boyd
