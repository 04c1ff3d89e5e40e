#pragma once

#include "harness.hpp"

#include <string>
#include <vector>

namespace boyd::test {

/// One line of the repository's history.
struct commit_line {
  std::string hash;
  std::string subject;
  std::string cycle; ///< trailers
  std::string node;
  std::string graph_head;
};

/// Oldest first.
std::vector<commit_line> commits_of(const site& s);

/// How many commits say that this cycle was recorded (not "running").
std::size_t records_of(const site& s, const std::string& cycle_id);

/// Where STATE.md, the rows and the repository of a home with no work in progress contradict each
/// other; empty when they agree: STATE.md has one block that parses and no unfinished row, each
/// history row counts the rows of its cycle, `boyd state show --at` its cycle shows it as the
/// latest, and none is committed twice; the work tree is clean; `git fsck --strict` is silent; and
/// every execution is replayed byte for byte from its record (boyd replay --strict).
std::vector<std::string> disagreements(const site& s);

/// The same, as one text for a message.
std::string told(const std::vector<std::string>& lines);

} // namespace boyd::test
