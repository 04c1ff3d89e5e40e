#pragma once

#include "boyd/core/result.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/foreign_lines.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/ports.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::graph {

/// The log goes on in a new segment before a write that would make one larger; bytes.
inline constexpr std::size_t segment_bytes = std::size_t{64} << 20;

/// One file of the log of facts. The first is graph.jsonl, the next graph-000002.jsonl and so on:
/// none is ever renamed, so that a line keeps its place for ever.
struct segment {
  std::uint32_t number = 1;
  bool compressed = false; ///< a person has packed it: NAME.zst

  /// As its lines are cited, compressed or not.
  std::string name() const;
  /// In HOME/knowledge.
  std::string file() const;

  bool operator==(const segment&) const = default;
};

/// The segments among the names of files, by number; one that is there twice is read uncompressed.
std::vector<segment> segments_among(const std::vector<std::string>& names);

/// The segments of a home. A compressed one is unpacked as it is read, from its beginning on; so
/// much of the latest one is kept as whoever reads backwards wants, not all of it. Offsets and
/// sizes are those of the unpacked bytes. Blocking; one thread.
class segment_files {
 public:
  /// `files` must outlive it. `unpack`: null where compressed segments cannot be read.
  segment_files(file_system& files, std::string home, unpack_function unpack);

  /// By number; none when there is no log yet.
  result<std::vector<segment>> list() const;
  std::string path(const segment& which) const;
  /// What was set aside of them.
  result<std::vector<foreign_lines>> foreign() const;
  /// Whether it is a symbolic link.
  result<bool> is_link(const segment& which) const;
  /// 0: it is missing.
  result<std::uint64_t> size(const segment& which);
  /// At most `most` bytes from `offset` on. `corrupt`: it is compressed, and these bytes, or some
  /// before them, cannot be unpacked.
  result<std::string> read(const segment& which, std::uint64_t offset, std::size_t most);

 private:
  /// A compressed segment, unpacked up to a place.
  struct unpacked_part {
    segment which;
    unpack_step step;
    std::uint64_t packed_end = 0; ///< bytes of the file that were read
    std::string packed{};         ///< the last of them,
    std::size_t used = 0;         ///< without what stands before this
    std::uint64_t begin = 0;      ///< of `bytes`, in the segment
    std::string bytes{};          ///< the last ones
    bool ended = false;           ///< there are no more

    std::uint64_t end() const { return begin + bytes.size(); }
  };

  /// The segment as far as `end`, where it goes so far, and at least what stands behind `wanted`.
  result<void> unpack(const segment& which, std::uint64_t wanted, std::uint64_t end);
  /// A little more of it.
  result<void> unpack_more(unpacked_part& part);

  file_system* files_;
  std::string home_;
  unpack_function unpack_;
  std::optional<unpacked_part> latest_;
};

/// The newest bytes of the log, whole lines of one or more segments one behind the other.
struct log_tail {
  struct part {
    segment which;
    std::uint64_t offset = 0; ///< of the part's first byte in its segment
    std::size_t begin = 0;    ///< in `text`
  };
  std::string text;
  std::vector<part> parts;
  bool is_whole = true; ///< nothing stands before it
};

/// At least the newest `bytes` of whole lines, as far as there are so many. The last segment may
/// end within a line; what another one ends with gets a line break.
result<log_tail> read_tail(segment_files& files, const std::vector<segment>& segments,
                           std::size_t bytes);

/// "graph.jsonl:17" for a line of the tail, from 1. Reads what stands before it in its segment.
result<std::string> place_in_tail(segment_files& files, const log_tail& tail, std::size_t line);

/// A finding of the check of a whole log.
struct log_problem {
  std::string place; ///< graph.jsonl:17, graph.jsonl:17-19, or a segment
  chain_problem_kind kind = chain_problem_kind::malformed;
  std::string detail;
};

struct log_report {
  std::size_t segments = 0;
  std::size_t facts = 0; ///< lines that are well-formed
  std::vector<log_problem> problems;
  std::uint64_t last_sequence = 0;
  std::size_t older = 0;       ///< of them, those of a version without seals: nothing proves them
  std::string older_until;     ///< the place of the last of these; empty: none
  std::string confirmed;       ///< the place of the last anchored line with a seal; empty: none
  std::string confirmed_head;  ///< its hash
  std::size_t unconfirmed = 0; ///< facts behind it
  /// The last line has no line break: it is being written, or was when a node died. It is not
  /// looked at.
  bool ends_within_line = false;

  bool intact() const noexcept { return problems.empty(); }
};

/// Checks all segments against their chain and check sums, that the lines are there that
/// `anchored_heads` (of commits' trailers) name, and that no lines of other programs lie beside the
/// log. Nothing is looked at behind `own_ends`, of a running node. Reads 4 MiB at once. Errors are
/// those of the files; a segment that cannot be unpacked is a problem.
result<log_report> verify_log(segment_files& files,
                              const std::set<std::string>& anchored_heads = {},
                              const written_log::segment_ends& own_ends = {});

/// What stands in the log behind the ends that a running node tells, as problems: another program
/// wrote it, or the node is writing at this moment.
result<std::vector<log_problem>> lines_behind(segment_files& files,
                                              const written_log::segment_ends& own_ends);

/// Those of `heads` that are the hash of no whole line of the log. Reads the newest segments first,
/// as far as it must.
result<std::set<std::string>> missing_heads(segment_files& files, std::set<std::string> heads);

/// Whether one of the whole lines of the log is the one that `head` names. Reads all of it.
result<bool> log_has_line(segment_files& files, const std::string& head);

} // namespace boyd::graph
