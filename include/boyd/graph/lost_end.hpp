#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::graph {

/// The last line of the log at the time of a commit, as the commit names it.
struct anchor {
  std::string head; ///< SHA-256 of the line
  std::string kernel_id;
  std::string commit;
  utc_time at{};

  bool operator==(const anchor&) const = default;
};

/// The anchor in the newest `commits` of a kernel; nothing when none of them names a line.
result<std::optional<anchor>> anchor_of(repository& history, const std::string& kernel_id,
                                        std::size_t commits);

/// The newest anchor of each kernel below `home`, the oldest first: the log only grows, so that it
/// must have the lines of all. Kernels whose repository cannot be read are left out: others tell of
/// them. Blocking.
std::vector<anchor> newest_anchors(const std::string& home, file_system& files,
                                   repository_provider& repositories);

/// These and the lost ends that are noted, each line once, without those of which a person has
/// accepted that they are gone. Blocking.
std::vector<anchor> expected_anchors(const std::string& home, file_system& files,
                                     repository_provider& repositories);

/// The lines that they name.
std::set<std::string> heads_of(const std::vector<anchor>& anchors);

/// Those of `heads` that are the hash of no whole line of `log`. Looks from the end.
std::set<std::string> heads_not_in(std::string_view log, std::set<std::string> heads);

/// Whether one of the whole lines of `log` is the one that `head` names. Looks from the end.
bool has_line(std::string_view log, const std::string& head);

/// An anchor whose line was not in the log: the end of the log was cut off or changed. The log goes
/// on behind the cut, and later commits name later lines, so this is kept until a person accepts
/// it, or the line is back.
struct lost_end {
  anchor named;
  utc_time found_at{};
  bool accepted = false;

  bool operator==(const lost_end&) const = default;
};

/// HOME/knowledge/graph.jsonl.lost, one JSON object a line.
std::string lost_ends_path(const std::string& home);

/// Oldest first. Errors: `corrupt`, those of the files. Blocking.
result<std::vector<lost_end>> read_lost_ends(file_system& files, const std::string& home);

/// Keeps the newest 64. Blocking.
result<void> write_lost_ends(file_system& files, const std::string& home,
                             std::vector<lost_end> lost);

/// Adds those of `newest` whose line the log has not, and takes away what is back. `has` tells
/// whether the log has the line with this hash. True: `lost` has changed.
bool compare_with_log(std::vector<lost_end>& lost, const std::vector<anchor>& newest,
                      const std::function<bool(const std::string& head)>& has, utc_time now);

/// What has not been accepted, as one sentence; empty when there is nothing.
std::string told(const std::vector<lost_end>& lost);

/// The command that accepts it.
inline constexpr const char* accept_command = "boyd doctor --accept-graph";

} // namespace boyd::graph
