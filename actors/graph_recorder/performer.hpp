#pragma once

#include "actors/keeper/core.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/segments.hpp"
#include "messages/graph.hpp"
#include "messages/health.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// How many facts at the end of the log are remembered to recognise a repeat: those of all cycles
/// that may be recorded again or are owed their facts, and more than ten thousand others. Some 10
/// MB when full.
inline constexpr std::size_t remembered_facts = std::size_t{1} << 16;

/// So much of the end of the log is checked when it is opened; `boyd doctor` checks all of it.
inline constexpr std::size_t checked_graph_bytes = std::size_t{32} << 20;

/// The graph recorder worker's side without actors: the log of facts below HOME/knowledge, with one
/// write and one fsync per batch. A segment that a batch would make larger than its limit is
/// followed by the next one; the chain goes on in it. A fact is its key (graph::key_of): one that
/// is among the newest `remembered_facts` is a repeat (of a batch whose worker died, of a caller
/// that had no answer, of a record that was made again after a restart, perhaps at another time)
/// and is acknowledged without being written again. At every opening the newest
/// `checked_graph_bytes` of the log are checked against their chain and their check sums: what is
/// damaged is told of, kept in `graph.jsonl.damaged` and left out by whoever reads the log (FAULTS
/// 40). While the node runs, nobody else writes the log: what another program appended, or put in
/// place of the last lines, is set aside before the next write and told of, and the chain goes on
/// behind the recorder's own last line (boyd/graph/foreign_lines.hpp). The line that the newest
/// commit of each kernel names must be in the log: where it is missing, that is kept in
/// `graph.jsonl.lost` and told until a person accepts it. Blocking; one thread.
class graph_session {
 public:
  /// `limit`: of a segment, in bytes.
  explicit graph_session(node_context_ptr context, std::size_t limit = graph::segment_bytes);

  /// Each reply carries the head after its own facts. A malformed fact refuses its own request
  /// alone, wholly; an I/O error refuses all that it concerns, and they may be repeated.
  void perform(std::vector<job<graph_request, graph_reply>>& batch);

  /// Tries to open the log again, and after a write that failed, whether its directory takes one.
  void probe();

  part_health health() const { return health_; }

 private:
  using jobs = std::vector<job<graph_request, graph_reply>>;

  /// What some requests want written; becomes true when the journal acknowledges it.
  struct draft {
    graph::edge_chain chain; ///< behind `lines`
    std::vector<std::string> lines;
    std::vector<std::string> hashes;                        ///< of `lines`
    std::set<std::string> facts;                            ///< of `lines`, as keys
    std::size_t bytes = 0;                                  ///< of `lines` with their line breaks
    std::vector<std::pair<std::size_t, std::string>> heads; ///< job, head after it
  };

  /// Tells what is wrong with the log, without opening it.
  void look();
  result<void> ensure_open();
  result<void> open_log();
  result<graph::log_tail> open_segment();
  /// The same, without what another program wrote since the log was opened, or last written.
  result<graph::log_tail> open_own();
  /// Sets aside what another program wrote to the log since it was opened, or last written.
  result<void> set_foreign_aside();
  /// Goes on in the next segment when `bytes` more would make this one too large.
  result<void> roll_over(std::size_t bytes);
  /// Fails when another program has written to the log.
  result<void> check_for_others() const;
  /// One try.
  result<std::uint64_t> append(const draft& d);
  /// Others have written to the log: it is opened again. True: it ends where it did.
  bool open_without_others();
  void acknowledge(const draft& d, std::uint64_t begin);
  /// From here on readers know how far the log, which ends so, is this node's own.
  result<void> tell_readers(const graph::log_tail& tail);
  files::journal_options journal_rules() const;
  result<draft> render(const draft& before, const graph_request& request) const;
  void write(jobs& batch, draft& d);
  /// The end of the log as it can be believed.
  struct checked_end {
    std::vector<std::string_view> served; ///< views into the tail
    /// Of the last line, when that one is damaged.
    std::optional<std::uint64_t> sequence;
  };
  result<checked_end> check(const graph::log_tail& tail);
  void tell_damage(const std::string& place, const graph::chain_report& report,
                   const graph::log_lines& lines);
  void take_torn(std::string_view torn);
  void tell_torn();
  /// Tells of what other programs wrote, until somebody has deleted it.
  void tell_foreign();
  /// Those of `heads` that no line of the log has, whose end this is.
  result<std::set<std::string>> missing_heads(const graph::log_tail& log,
                                              std::set<std::string> heads);
  /// Compares the log with the newest commits of the home's kernels, and tells what is missing.
  void tell_lost_end(const graph::log_tail& log);
  /// Others have cut the log or written to it, or a person has accepted what was told of it.
  bool is_opened_again() const;
  result<void> set_aside(const std::vector<std::string_view>& damaged);
  void remember(std::string fact);
  void lost(const error& why);
  void restored();

  node_context_ptr context_;
  std::size_t limit_;
  graph::segment_files files_;
  graph::segment now_; ///< that is written
  std::string path_;   ///< its
  std::string base_;   ///< of what is kept beside the log
  std::optional<files::journal> log_;
  graph::edge_chain chain_;
  std::deque<std::string> order_;
  std::set<std::string> recent_;
  std::uint64_t number_ = 0;         ///< among the recorders of this node
  std::vector<std::string> torn_;    ///< whole lines that were cut off; told of until the end
  bool tells_lost_end_ = false;      ///< graph.jsonl.lost has something that nobody has accepted
  std::set<std::string> far_heads_;  ///< lines that commits name, found before the log's end
  std::vector<std::string> foreign_; ///< paths of what other programs wrote, as it was told
  bool seen_ = false;                ///< the log was open once: it must not be made anew
  bool write_failed_ = false;        ///< the log's directory must take a file before it is well
  part_health health_;
};

} // namespace boyd
