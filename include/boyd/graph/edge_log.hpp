#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::graph {

/// Longer lines are refused and read as malformed; bytes.
inline constexpr std::size_t max_line_bytes = std::size_t{1} << 20;

/// One immutable fact of the knowledge graph (docs/knowledge.md).
struct edge {
  std::string from; ///< a node id
  std::string to;   ///< a node id
  std::string type; ///< used_in | validated_by | promoted_to | derived_from | supports | …
  utc_time timestamp{};
  std::string meta_json = "{}"; ///< a JSON object

  bool operator==(const edge&) const = default;
};

/// What makes two edges one fact: from, type, to and, where `meta` has one, its `fence` (a number).
/// Time and the rest of `meta` are how it was told. No two edges with different keys have the same
/// text; an edge whose ids or type have control characters is none (is_node_id).
std::string key_of(const edge& e);

/// True for ctx_…, exec_…, skill_…, decision_…, outcome_… and candidate_… with something after the
/// prefix and no control characters.
bool is_node_id(std::string_view id) noexcept;

/// True for docs/knowledge.md's edge types.
bool is_edge_type(std::string_view type) noexcept;

/// One line as it was read.
struct logged_edge {
  edge fact;
  /// Position in the chain, from 1; nothing in a line of an older log.
  std::optional<std::uint64_t> seq;
  std::string prev; ///< SHA-256 of the previous line; empty in a line of an older log

  bool operator==(const logged_edge&) const = default;
};

/// Reads one line (without its line break); `parse_error` says why not. Unknown members are
/// ignored, unknown edge types and node prefixes are read. The check sum is not looked at.
result<logged_edge> parse_edge(std::string_view line);

/// Whether a line that parses is, by its own check sum, as it was written. One without a place in
/// the chain has none (an older log), nor has one of a version before check sums, which ends with
/// its `prev`.
bool is_as_written(std::string_view line, const logged_edge& read);

/// `prev` of the very first line.
inline constexpr std::string_view genesis =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// Renders edges as lines of the chain: each carries `seq` and `prev`, the SHA-256 of the whole
/// previous line without its line break, and `crc`, the CRC-32 of its own text before it: nothing
/// is chained to the last line yet. A value type: render a batch on a copy and keep the copy once
/// the batch is acknowledged. Pure.
class edge_chain {
 public:
  /// An empty log.
  edge_chain() = default;

  /// Goes on after `last_line` (empty: an empty log). After a line of an older log the chain begins
  /// with seq 1 and that line's hash. `sequence`: of the last line, when what it says itself cannot
  /// be believed, or it says none and stands behind others that do.
  static result<edge_chain> resume(std::string_view last_line,
                                   const std::optional<std::uint64_t>& sequence = {});

  /// The next line, without line break. `invalid_argument`: a node id, type or meta is not valid;
  /// `limit_exceeded`: the line is too long or meta too deep; then the chain has not moved.
  result<std::string> append(const edge& fact);

  /// SHA-256 of the last line: what a commit's trailer anchors; `genesis` when there is none.
  const std::string& head() const noexcept { return head_; }

  /// `seq` of the last line; 0 when there is none.
  std::uint64_t sequence() const noexcept { return sequence_; }

 private:
  std::string head_{genesis};
  std::uint64_t sequence_ = 0;
};

enum class chain_problem_kind : std::uint8_t {
  malformed,    ///< the line does not parse
  changed,      ///< its check sum is another one; or, without one, it is not the line that its
                ///< successor was chained to, or its own `prev` was hit
  removed,      ///< lines are missing before this one
  out_of_order, ///< the line repeats or precedes its predecessor, or is foreign to the chain
  unchained,    ///< a line without seq and prev after a chained one: no version has written it so
  torn,         ///< the last line has no line break
  head_missing, ///< the anchored head is not the hash of any line: the end was changed or removed
  foreign,      ///< lines that another program wrote while a node was running
  linked,       ///< the segment is a symbolic link: what it shows is not the log that a node wrote
};

std::string_view name_of(chain_problem_kind kind) noexcept;

struct chain_problem {
  std::size_t line = 0; ///< from 1
  chain_problem_kind kind = chain_problem_kind::malformed;
  std::string detail;

  bool operator==(const chain_problem&) const = default;
};

struct chain_report {
  std::size_t lines = 0;               ///< all, blank ones included
  std::size_t chained = 0;             ///< well-formed with seq and prev
  std::size_t older = 0;               ///< well-formed without, before the first of those
  std::size_t last_older = 0;          ///< number of the last of these lines
  std::vector<chain_problem> problems; ///< by line number
  std::string head{genesis};           ///< hash of the last line
  std::uint64_t last_sequence = 0;     ///< of the last line that can be believed
  std::size_t damaged_at_end = 0;      ///< lines behind that one
  std::size_t anchored_line = 0;       ///< the last that has an anchored hash; 0: none
  std::string anchored_head;           ///< its hash
  std::size_t behind_anchor = 0;       ///< lines behind it that can be believed

  bool intact() const noexcept { return problems.empty(); }

  /// Numbers of the lines that must not be believed (malformed, changed, out of order,
  /// unchained), ascending.
  /// A reader leaves them out and serves the rest.
  std::vector<std::size_t> damaged() const;
};

/// Judges the lines of a log, one after the other, each against its predecessor. Not thread-safe.
class chain_verifier {
 public:
  /// From the first line on. Each of the anchored heads (commits' trailers) must be a line's hash.
  explicit chain_verifier(std::set<std::string> anchored_heads)
      : missing_heads_(std::move(anchored_heads)) {
    missing_heads_.erase(std::string(genesis));
  }
  /// From the middle: what stands before it is taken for what its first line says.
  explicit chain_verifier(std::size_t lines_before) : in_the_middle_(true) {
    report_.lines = lines_before;
  }

  /// `complete`: it had a line break.
  void take(std::string_view line, bool complete);
  std::size_t lines() const noexcept { return report_.lines; }
  /// Once, behind the last line.
  chain_report finish();

 private:
  void judge_chained(const logged_edge& line);
  void judge_older();
  void accuse(const logged_edge& line);
  void add(std::size_t line, chain_problem_kind kind, std::string detail);

  std::set<std::string> missing_heads_; ///< anchored ones that no line had so far
  bool in_the_middle_ = false;          ///< what stands before the first line is not known
  bool jumped_ = false;                 ///< a number was too high, the last one as far as we know:
  std::uint64_t before_jump_ = 0;
  std::size_t damaged_between_ = 0; ///< lines behind the last one that can be believed:
  std::size_t previous_line_ = 0;
  std::string good_head_{genesis}; ///< its hash
  chain_report report_;
};

/// Checks a whole log. With `anchored_head` (a commit's trailer) also that the line it names is
/// still there: only so a changed or removed end is seen.
chain_report verify(std::string_view text, const std::optional<std::string>& anchored_head = {});

/// The same of the end of a log, which begins with a whole line behind `lines_before` others; what
/// stands before it is taken for what that line says. Line numbers are those of the whole log.
chain_report verify_end(std::string_view text, std::size_t lines_before);

/// The lines of a log, or of its end, as its readers take it.
struct log_lines {
  std::vector<std::string_view> served;  ///< without blank and damaged ones; views into the text
  std::vector<std::string_view> damaged; ///< those that `report` says must not be believed
};

/// `text` and `lines_before` are those that `report` was made of.
log_lines sort_lines(std::string_view text, const chain_report& report,
                     std::size_t lines_before = 0);

} // namespace boyd::graph
