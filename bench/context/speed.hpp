#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>

namespace boyd::bench {

/// What the node's index of memory costs on one core, on the path that a node takes: files of a
/// kernel's home, index.db, recall.
struct recall_speed {
  double index_seconds = 0; ///< of a home that nobody has looked at yet, with the first question
  double load_seconds = 0;  ///< of a new process on the same index, with its first question
  double query_ms = 0;      ///< median of questions
  double query_p99_ms = 0;
  /// The same in processor time of this process, which other programs on the machine do not change:
  double index_cpu_seconds = 0;
  double load_cpu_seconds = 0;
  double query_cpu_ms = 0; ///< mean
  double index_mib = 0;    ///< the database
  double resident_mib = 0; ///< of this process, at its most
};

/// Makes `entries` entries of drawn words (a tenth Chinese) in a home below `directory`, and asks
/// `questions` questions.
result<recall_speed> measure_speed(const std::string& directory, std::size_t entries,
                                   std::size_t questions);

} // namespace boyd::bench
