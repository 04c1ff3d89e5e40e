#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Answers from the log of facts (docs/knowledge.md). Every statement names its lines; nothing is
/// written.
namespace boyd::graph {

/// A fact with the place of its line.
struct cited_fact {
  edge fact;
  std::uint64_t line = 0; ///< of the whole log
  std::string place;      ///< graph.jsonl:1042
};

/// Where answers come from. Lines that must not be believed are left out. Blocking.
class fact_source {
 public:
  virtual ~fact_source() = default;

  /// Facts that have this node (or type_node) at one of their ends, the newest first.
  virtual result<std::vector<cited_fact>> facts_of(const std::string& node, std::size_t most) = 0;
  /// Facts that have two of these nodes at their ends, among the newest `most` of each, in the
  /// order of the log.
  virtual result<std::vector<cited_fact>> facts_between(const std::vector<std::string>& nodes,
                                                        std::size_t most) = 0;
  /// The newest first, until `take` answers false.
  virtual result<void> backwards(const std::function<bool(const cited_fact& f)>& take) = 0;
  virtual result<std::optional<learned_item>> item(const std::string& id) = 0;
  /// What the fold has of an area, as knowledge_index has it.
  virtual result<std::optional<std::string>> value(index_area area, const std::string& key) = 0;
  virtual result<std::vector<std::pair<std::string, std::string>>>
  some(index_area area, const std::string& from, std::size_t most) = 0;
  virtual result<std::uint64_t> count(index_area area,
                                      const std::optional<std::string>& before) = 0;
  /// graph.jsonl:1042, of a line of the whole log; empty: the index does not know it.
  virtual result<std::string> place(std::uint64_t line) = 0;
  /// Lines that were left out, of all.
  virtual std::uint64_t left_out() const = 0;
  virtual std::uint64_t lines() const = 0;
};

/// What a question needs besides.
struct inspection {
  fact_source& source;
  utc_time now{};
  std::function<std::string(const context::item_statistics& s)> stage; ///< docs/skills.md
  mutable bool older_left_out = false; ///< a node had more facts than are looked at
};

/// Facts that `query` asks for; an empty text or nothing: any. A node is called by its id or the
/// beginning of one, the path of a context, a skill's name, or an agent's (its newest run).
struct fact_filter {
  std::string from;
  std::string to;
  std::string type;
  std::optional<utc_time> since;
  std::size_t most = 100;
};

/// So many lines are looked at for what no index finds.
inline constexpr std::uint64_t most_lines_looked_at = 500'000;

/// "last", an agent's name, a dispatch's id or a unique part of one → exec_…; `not_found`,
/// `conflict` when several fit.
result<std::string> find_execution(const inspection& in, const std::string& text);

// Each answers a JSON object, as docs/knowledge.md describes it.

/// What a run used, what it validated, and what became of the contexts that it used.
result<std::string> trace(const inspection& in, const std::string& execution);
/// Of each context: used, validated, promoted; the last used one first. It says how many there are.
result<std::string> stats(const inspection& in, std::size_t most);
/// Where a skill comes from, and what became of it.
result<std::string> lineage(const inspection& in, const std::string& skill);
/// What stands behind a run's answer.
result<std::string> why(const inspection& in, const std::string& execution);
/// What deserves a look: orphaned, decayed and over-fitted skills, then noisy contexts. It says how
/// many findings there are.
result<std::string> findings(const inspection& in, std::size_t most);
/// What the node has learned since then, in sentences.
result<std::string> learned_since(const inspection& in, utc_time since);
result<std::string> query(const inspection& in, const fact_filter& filter);
/// A part of the graph for a picture (picture.hpp): around a node, which is called as in
/// fact_filter, else the newest facts.
result<std::string> neighbourhood(const inspection& in, const std::string& around, int depth,
                                  std::size_t most_nodes);

} // namespace boyd::graph
