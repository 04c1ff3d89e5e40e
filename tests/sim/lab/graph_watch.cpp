#include "tests/sim/lab/graph_watch.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/edge_log.hpp"

#include <algorithm>

namespace boyd::sim {

void graph_watch::look(const std::string& content, std::uint64_t inode, bool whole) {
  if (whole || inode != inode_ || !ends_with_last_line(content)) {
    const auto most = std::min(content.size(), seen_.size());
    const auto end = seen_.begin() + static_cast<std::ptrdiff_t>(most);
    const auto differs = std::mismatch(seen_.begin(), end, content.begin()).first;
    take_back(static_cast<std::size_t>(differs - seen_.begin()));
  }
  inode_ = inode;
  auto from = seen_.size();
  std::size_t bad = 0; // lines that are no edges: a torn end, unless a good one follows
  while (true) {
    const auto end = content.find('\n', from);
    if (end == std::string::npos)
      break;
    const auto text = std::string_view(content).substr(from, end - from);
    from = end + 1;
    if (text.empty())
      continue;
    if (!take(text, from)) {
      ++bad;
      continue;
    }
    if (bad > 0)
      violated("the graph's chain is broken: a bad line before line " +
               std::to_string(lines_.size()) + ": " + sanitize_utf8(text));
    bad = 0;
    seen_.append(content, seen_.size(), from - seen_.size());
  }
}

void graph_watch::look_at_end(const std::string& content, std::uint64_t inode) {
  look(content, inode, true);
  if (seen_.size() == content.size())
    return;
  const auto report = graph::verify(content);
  violated("the graph's chain is broken at its end" +
           (report.intact() ? std::string() : ": " + report.problems.front().detail));
}

/// Whether the last line that was seen still stands where it did. It holds the hash of the one
/// before: then all others do as well, unless somebody has changed what stood there for long.
bool graph_watch::ends_with_last_line(const std::string& content) const {
  if (content.size() < seen_.size())
    return false;
  const auto from = lines_.size() < 2 ? 0 : lines_[lines_.size() - 2].end;
  return std::string_view(content).substr(from, seen_.size() - from) ==
         std::string_view(seen_).substr(from);
}

/// Lines that were not acknowledged may go: they are written anew.
void graph_watch::take_back(std::size_t common) {
  while (!lines_.empty() && lines_.back().end > common) {
    if (lines_.size() <= acknowledged_) {
      violated("an acknowledged edge is gone from the graph: line " +
               std::to_string(lines_.size()));
      acknowledged_ = lines_.size() - 1;
    }
    number_of_.erase(lines_.back().hash);
    facts_.erase(lines_.back().fact);
    lines_.pop_back();
  }
  seen_.resize(lines_.empty() ? 0 : lines_.back().end);
}

bool graph_watch::has_edge(const std::string& from, const std::string& to,
                           const std::string& type) const {
  const auto begin = from + ' ' + to + ' ' + type + ' ';
  const auto at = facts_.lower_bound(begin);
  return at != facts_.end() && at->starts_with(begin);
}

bool graph_watch::take(std::string_view text, std::size_t end) {
  const auto read = graph::parse_edge(text);
  if (!read)
    return false;
  const auto& before = lines_.empty() ? std::string(graph::genesis) : lines_.back().hash;
  const auto sequence = lines_.empty() ? 0 : lines_.back().sequence;
  if (read->prev != before || read->seq != sequence + 1)
    violated("the graph's chain is broken at line " + std::to_string(lines_.size() + 1) + ": " +
             sanitize_utf8(text));
  const auto& f = read->fact;
  line l{end, sha256_hex(text), f.from + ' ' + f.to + ' ' + f.type + ' ' + graph::key_of(f),
         read->seq.value_or(0)};
  if (!facts_.insert(l.fact).second)
    violated("a fact stands twice in the graph");
  number_of_[l.hash] = lines_.size() + 1;
  lines_.push_back(std::move(l));
  return true;
}

void graph_watch::anchored(const std::string& head) {
  if (head == graph::genesis)
    return;
  const auto at = number_of_.find(head);
  if (at == number_of_.end())
    violated("a commit names a head that is not in the graph of " + std::to_string(lines_.size()) +
             " lines");
  else if (at->second < acknowledged_)
    violated("acknowledged edges are out of order");
  else
    acknowledged_ = at->second;
}

} // namespace boyd::sim
