#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::sim {

/// Follows a graph's file from line to line as it grows: each line is read once, at the first step
/// after it was written. The chain is whole, a fact stands once, and what a commit has named as the
/// head stays, in that order. Single-threaded.
class graph_watch {
 public:
  /// Hears of each broken rule.
  std::function<void(const std::string&)> violated;

  /// The file as it is now. `whole`: every byte that was seen before is compared, else only when
  /// the file is another one or its last line is not where it was.
  void look(const std::string& content, std::uint64_t inode, bool whole);
  /// The same when nothing is being written any more: there is no torn or bad end, either.
  void look_at_end(const std::string& content, std::uint64_t inode);
  /// Whether an edge of this type from one to the other is there.
  bool has_edge(const std::string& from, const std::string& to, const std::string& type) const;
  /// A commit names this line's hash as the head: it is acknowledged.
  void anchored(const std::string& head);

 private:
  struct line {
    std::size_t end = 0; ///< offset behind its line break
    std::string hash;
    std::string fact;
    std::uint64_t sequence = 0;
  };

  bool ends_with_last_line(const std::string& content) const;
  void take_back(std::size_t common);
  bool take(std::string_view text, std::size_t end);

  std::string seen_; ///< the lines that were found good
  std::vector<line> lines_;
  std::map<std::string, std::size_t> number_of_; ///< hash → line, from 1
  std::set<std::string> facts_;
  std::uint64_t inode_ = 0;
  std::size_t acknowledged_ = 0; ///< number of the newest line that a commit has named
};

} // namespace boyd::sim
