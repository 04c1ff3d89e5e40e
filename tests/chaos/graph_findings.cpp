#include "graph_findings.hpp"

#include "acceptance/agreement.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace boyd::test {

namespace {

std::string name_of(const std::string& type, const std::string& from, const std::string& to) {
  return type + " " + from + " " + to;
}

class graph_judge {
 public:
  explicit graph_judge(const site& home)
      : path_(home.home() + "/knowledge/graph.jsonl"), text_(read_file(path_)) {
    for (const auto& c : commits_of(home))
      if (!c.graph_head.empty() && c.graph_head != graph::genesis)
        heads_.push_back(c.graph_head);
  }

  std::vector<std::string> all(const std::vector<wanted_edge>& wanted) {
    judge_chain();
    read_lines();
    judge_heads();
    for (const auto& w : wanted)
      if (!edges_.contains(name_of(w.type, w.from, w.to)))
        wrong("does not know " + name_of(w.type, w.from, w.to));
    // A kill within a write leaves a part of a line in `.torn`, which nobody was told of.
    if (std::filesystem::exists(path_ + ".damaged"))
      wrong("has lost lines: " + read_file(path_ + ".damaged"));
    return std::move(out_);
  }

 private:
  void wrong(const std::string& what) { out_.push_back(path_ + " " + what); }

  void judge_chain() {
    const auto head = heads_.empty() ? std::nullopt : std::optional(heads_.back());
    const auto report = graph::verify(text_, head);
    for (const auto& p : report.problems)
      wrong("line " + std::to_string(p.line) + " is " + std::string(graph::name_of(p.kind)) + ": " +
            p.detail);
    if (report.older > 0)
      wrong("has lines without a place in the chain");
  }

  void read_lines() {
    std::set<std::string> facts;
    for (const auto& line : lines_of(text_)) {
      lines_.emplace(sha256_hex(line), lines_.size());
      const auto read = graph::parse_edge(line);
      if (!read)
        continue; // said above
      const auto& f = read->fact;
      const auto name = name_of(f.type, f.from, f.to);
      edges_.insert(name);
      if (!facts.insert(graph::key_of(f)).second)
        wrong("has a fact twice: " + line);
    }
  }

  void judge_heads() {
    std::size_t last = 0;
    for (const auto& head : heads_) {
      const auto at = lines_.find(head);
      if (at == lines_.end()) {
        wrong("has no line that a commit names: " + head);
        continue;
      }
      if (at->second < last)
        wrong("has a commit's head before that of the commit before it: " + head);
      last = at->second;
    }
  }

  std::string path_;
  std::string text_;
  std::vector<std::string> heads_;           ///< of the commits, oldest first
  std::map<std::string, std::size_t> lines_; ///< hash, position
  std::set<std::string> edges_;
  std::vector<std::string> out_;
};

} // namespace

std::vector<std::string> graph_faults(const site& home, const std::vector<wanted_edge>& wanted) {
  return graph_judge(home).all(wanted);
}

} // namespace boyd::test
