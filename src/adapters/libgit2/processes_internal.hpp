#pragma once

#include <ctime>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>

/// Who is alive on this machine, from /proc: the evidence behind the removal of a lock.
namespace boyd::adapters::git {

/// The line that a lock of this process carries:
/// "boyd <pid> <start time in ticks> <boot id> <pid namespace>\n".
std::string own_mark();

/// True when the file carries such a line and its process has provably ended: another boot, or the
/// same boot and pid namespace without that process.
bool is_mark_of_dead(const std::string& path);

/// True when the file carries such a line and its process lives here.
bool is_mark_of_living(const std::string& path);

/// True when the file carries the line of this very process.
bool is_own_mark(const std::string& path);

/// When the machine started, in seconds since 1970; 0 when unknown.
std::time_t boot_time();

struct process_survey {
  std::set<std::pair<dev_t, ino_t>> open; ///< files that some process has open
  bool git_at_work = false; ///< a git process whose working directory is in the work tree

  bool holds(dev_t device, ino_t inode) const { return open.count({device, inode}) != 0; }
};

/// Looks at all processes. Descriptors of other users' processes cannot be seen without privilege;
/// a git process of root or of this user whose directory cannot be seen counts as at work.
process_survey survey_processes(const std::string& work_tree);

} // namespace boyd::adapters::git
