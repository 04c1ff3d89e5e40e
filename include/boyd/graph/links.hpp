#pragma once

#include "boyd/graph/edge_log.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::graph {

/// FNV-1a, 64 bits: a node's name in the index of links. Two nodes may share one: whoever follows a
/// link looks at the line.
std::uint64_t node_hash(std::string_view id) noexcept;

/// Whether facts of a type are found by it. Those that every run leaves are not: they are found by
/// their nodes, or one after the other.
bool is_rare(std::string_view type) noexcept;
/// What takes the place of a node's id for a type, for the runs of an agent, and for runs by the
/// first eight characters of their id's last group, as people see them: no node is called so.
std::string type_node(std::string_view type);
std::string agent_node(std::string_view agent);
std::string short_node(std::string_view characters);
inline constexpr std::size_t short_id_characters = 8;

/// What a fact is found by, besides the nodes at its ends.
std::vector<std::string> further_nodes(const edge& fact);
/// Whether it is found by this node, or by what takes the place of one.
bool is_found_by(const edge& fact, std::string_view node);

/// Lines between two marks: so many are read to find one.
inline constexpr std::uint64_t lines_between_marks = 64;

/// Gathers where nodes stand in the log, in the order of its lines, for the index: the same blocks
/// whatever the batches were. Pure; not thread-safe.
class link_collector {
 public:
  /// The block that is not full, as the index has it; `lines` have been read.
  void resume(std::vector<fact_link> fresh, std::uint64_t lines);

  /// A line begins, a fact or not.
  void begin_line(const line_mark& at);
  /// It is this fact.
  void take(const edge& fact, std::uint64_t line);
  /// Behind so many lines a block is full.
  static bool is_full(std::uint64_t lines) noexcept { return lines % lines_of_block == 0; }
  /// It is: before the next line begins.
  void end_block();
  /// The block that is not full began before `resume`, or its links have been taken: the index has
  /// some of them as fresh ones.
  bool has_known() const noexcept { return known_ > 0; }

  /// Since they were taken last.
  link_changes take_changes();

 private:
  std::vector<fact_link> full_; ///< of blocks that are full and were not taken yet
  bool has_full_ = false;
  std::vector<fact_link> block_;
  std::size_t known_ = 0; ///< of them, at the front: the index has them
  std::vector<line_mark> marks_;
  std::optional<std::uint64_t> anew_from_;
};

} // namespace boyd::graph
