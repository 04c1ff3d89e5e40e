#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boyd::crash {

/// A row of `dispatches` as the system's sqlite3 shows it.
struct dispatch_row {
  std::string cycle_id, agent_id, status;
  std::int64_t fence = 0;
  int entries = 0; ///< of its attempts
  int fences = 0;  ///< different ones among them
  int ended_well = 0;
};

/// A row of `cycles`.
struct cycle_row {
  std::string status;
  int dispatched = 0;
  int succeeded = 0;
  int failed = 0;
};

/// What is on a home's disk while nobody uses it, read by programs and code that are not Boyd's
/// store: the system's sqlite3 (on a copy: opening a database repairs it) and git.
struct disk_view {
  std::string integrity; ///< "ok", or what `pragma integrity_check` says
  std::map<std::string, dispatch_row> dispatches;
  std::map<std::string, cycle_row> cycles;
  std::vector<std::string> paused;  ///< agents
  std::string fsck;                 ///< empty: `git fsck --strict` is silent and ends with 0
  std::vector<std::string> commits; ///< subjects, newest first
  std::string state;                ///< STATE.md
  std::vector<std::string> graph;   ///< whole lines of graph.jsonl
  std::map<std::string, std::string> records; ///< executions/*/record.json, by dispatch
  std::map<std::string, std::string> objects; ///< context/objects, contents by name
  std::vector<std::string> locks; ///< lock files in the repository, drafts beside STATE.md
};

/// `scratch` is emptied and used for the copy. Throws when a program cannot be run.
disk_view look_at_disk(const std::string& home, const std::string& scratch);

} // namespace boyd::crash
