#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/written_log.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace boyd::graph {

struct segment;

/// What another program wrote to the log of facts while a node was running. It was set aside in a
/// file beside the log, graph.foreign-TIME-line-N.jsonl, which nobody reads for facts.
struct foreign_lines {
  std::string file;        ///< its name, in HOME/knowledge
  std::string segment;     ///< where the lines stood: graph.jsonl,
  std::uint64_t first = 0; ///< from this line on
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

/// At a node's start, before it runs anything: what the log has now is its own, also before the
/// recorder has opened it. Blocking.
result<void> take_log_as_found(file_system& files, const std::string& home, written_log& written);

/// Sets aside what stands in the log behind the end of `written`, and what the last lines were
/// replaced by; segments behind the last one, too. A copy is durable before the log is cut: a crash
/// in between makes a second copy. What a recorder had begun to write stays. Without an end there
/// is nothing to do. Blocking.
result<void> set_foreign_lines_aside(file_system& files, const std::string& home,
                                     const written_log& written, utc_time now);

/// How far a segment that is `size` bytes long is the node's own, with what a recorder had begun to
/// write behind its end; `size`: all of it, or nobody says how far. Blocking.
result<std::uint64_t> own_end(file_system& files, const std::string& home,
                              const written_log& written, const segment& where, std::uint64_t size);

/// Whether another program has written behind the end of a segment that is full, or begun one.
result<bool> has_foreign_segment(file_system& files, const std::string& home,
                                 const written_log& written);

/// The files that are there, by name. A person deletes them.
result<std::vector<foreign_lines>> list_foreign_lines(file_system& files, const std::string& home);

/// "graph.jsonl:813", or with the last one, too: "graph.jsonl:813-815".
std::string place_of(const foreign_lines& f);

/// "1 line (412 bytes) that another program wrote while the node was running does not count; …"
std::string told(const foreign_lines& f);

} // namespace boyd::graph
