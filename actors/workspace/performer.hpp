#pragma once

#include "actors/keeper/core.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/ports/repository.hpp"
#include "messages/health.hpp"
#include "messages/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Bounds of one `hash_inputs`, beyond which it answers `limit_exceeded`.
inline constexpr std::size_t hashed_files = 10'000;
inline constexpr std::uint64_t hashed_bytes = std::uint64_t{256} << 20;
/// How deep below a named directory files are looked for.
inline constexpr std::size_t hashed_depth = 64;

/// Larger files are no records of ours.
inline constexpr std::size_t most_record_bytes = std::size_t{64} << 20;

/// Records of runs under way that a worker keeps at hand.
inline constexpr std::size_t most_open_records = 4096;

/// Workers for the tools of agents.
inline constexpr std::size_t tool_workers = 4;
/// The worker that serves a workspace: always the same, so that one whose disk hangs takes one
/// worker and no more.
std::size_t tool_worker_of(const std::string& workspace) noexcept;
/// Calls that wait for one of them, beyond which it answers `overloaded`.
inline constexpr std::size_t tool_queue = 256;

/// The workspace worker's side without actors. Paths are absolute; reading stops at regular files
/// (a pipe would block for ever). Blocking; one thread.
class workspace_session {
 public:
  explicit workspace_session(node_context_ptr context);

  void perform(std::vector<job<workspace_request, workspace_reply>>& batch);

  /// Whether the home is the node's user's alone, still; and after a write that failed whether its
  /// directory takes a file again.
  void probe();

  /// Degraded while private files cannot be written.
  part_health health() const { return health_; }

 private:
  result<workspace_reply> answer(const workspace_request& request);
  result<workspace_reply> carry_out(const write_private_file& what);
  result<workspace_reply> carry_out(const write_durable_file& what);
  result<workspace_reply> carry_out(const remove_file& what);
  result<workspace_reply> carry_out(const inspect_files& what);
  result<workspace_reply> carry_out(const read_text_file& what);
  result<workspace_reply> carry_out(const hash_inputs& what);
  result<workspace_reply> carry_out(const run_tool& what);
  result<workspace_reply> carry_out(const look_at_workspace& what);
  result<workspace_reply> carry_out(const keep_result& what);
  result<workspace_reply> carry_out(const append_record& what);
  result<workspace_reply> carry_out(const read_configuration& what);
  result<workspace_reply> carry_out(const read_items& what); // reading.cpp
  // recording.cpp
  result<workspace_reply> carry_out(const begin_record& what);
  result<workspace_reply> carry_out(const end_record& what);
  result<workspace_reply> carry_out(const update_record& what);
  result<workspace_reply> carry_out(const add_evidence& what);
  // explaining.cpp
  result<workspace_reply> carry_out(const explain_execution& what);
  result<workspace_reply> carry_out(const replay_execution& what);
  // leftovers.cpp
  result<workspace_reply> carry_out(const list_executions& what);
  result<workspace_reply> carry_out(const remove_executions& what);
  result<workspace_reply> carry_out(const named_contents& what);
  result<workspace_reply> carry_out(const sweep_contents& what);

  result<void> keep(const std::vector<std::string>& contents);
  result<record::execution> record_of(const std::string& dispatch_id);
  result<void> add_evidence_to(const record::execution_facts& facts);
  result<void> write_record(const record::execution& e, bool durable);
  void keep_open(record::execution e);
  result<record::execution> begin(const begin_record& what);
  result<void> append(const std::string& path, const std::string& text);
  result<void> write_new(const std::string& path, const std::string& text);
  void look_at_modes();
  /// A durable file, and what it says of the disk.
  std::optional<git_project> project_of(const std::string& absolute); // reading.cpp
  result<void> write_durable(const std::string& path, std::string_view text);
  /// The same; without `durable` safe from everything but a power cut.
  result<void> replace(const std::string& path, std::string_view text, bool durable);
  void note(const result<void>& written, const std::string& path);

  std::map<std::string, std::optional<git_project>> projects_; ///< by directory
  /// Records of runs under way that wait for no disk, to be ended without being read again; at most
  /// most_open_records.
  std::map<std::string, record::execution> open_records_;
  node_context_ptr context_;
  part_health health_;
  std::string failed_in_; ///< the directory that was not written to while it is not well
};

} // namespace boyd
