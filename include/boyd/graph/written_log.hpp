#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace boyd::graph {

/// A line that the recorder has written or found, and where.
struct written_line {
  std::uint64_t begin = 0; ///< in its segment
  std::uint64_t end = 0;   ///< behind its line break
  std::string hash;        ///< SHA-256 of its text without the line break
};

/// So many of the newest lines are known again.
inline constexpr std::size_t known_lines = 1024;

/// How far the recorder of a running node has written the log of facts. What stands behind that,
/// nobody reads for a fact: another program wrote it, or it is not durable yet. It outlives the
/// recorder's worker and ends with the node. Threads: any.
class written_log {
 public:
  /// Bytes of each segment, by its number.
  using segment_ends = std::map<std::uint32_t, std::uint64_t>;

  struct snapshot {
    segment_ends ends;                   ///< empty: no recorder has opened the log yet
    std::vector<written_line> lines;     ///< the newest of the last segment, oldest first
    std::vector<std::string> unfinished; ///< batches that may stand behind the end
  };

  struct end_view {
    segment_ends ends;                ///< as above
    std::optional<written_line> last; ///< of the last segment
  };

  snapshot now() const;
  end_view end() const;
  segment_ends ends() const;
  /// SHA-256 of the last line, which a commit names; empty: there is none, or nobody knows.
  std::string head() const;

  /// A recorder has opened the log, whose last segment ends with these lines (the newest
  /// `known_lines` are enough), oldest first; `head` as above, also of an earlier segment. It is
  /// the one that is listened to from here on; answers its number.
  std::uint64_t opened(segment_ends ends, const std::vector<written_line>& lines,
                       std::string head = {});
  /// It is about to write these bytes behind the end.
  void begin(std::uint64_t recorder, std::string bytes);
  /// They are durable, as these lines.
  void wrote(std::uint64_t recorder, const std::vector<written_line>& lines);
  /// The log goes on in this segment, which is empty.
  void goes_on_in(std::uint64_t recorder, std::uint32_t segment);
  /// As if the node were another one.
  void forget();

 private:
  void forget_old_lines();

  mutable std::mutex mutex_;
  std::uint64_t recorder_ = 0;
  std::string head_;
  segment_ends ends_;
  std::deque<written_line> lines_;
  std::map<std::uint64_t, std::string> unfinished_; ///< by recorder
};

} // namespace boyd::graph
