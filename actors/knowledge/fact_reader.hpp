#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/context/confidence.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/graph/links.hpp"
#include "boyd/graph/segments.hpp"
#include "boyd/memory/recall.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace boyd {

/// Up to where the log has been read; a value of index_area::position.
struct log_position {
  std::uint32_t segment = 1;
  std::uint64_t bytes = 0;         ///< of that segment
  std::uint64_t lines = 0;         ///< of the whole log
  std::uint64_t skipped = 0;       ///< of them, for they cannot be believed
  std::uint64_t sequence = 0;      ///< of the last line that has one
  std::uint64_t last_size = 0;     ///< of the last line, with its line break
  std::string last_hash;           ///< of the last line
  std::uint64_t missing = 0;       ///< facts between the lines, by their numbers
  std::uint64_t skipped_since = 0; ///< lines that were skipped behind the last one with a number
  std::uint64_t first_sealed = 0;  ///< the first line with a number; 0: none has one

  /// Lines of an older version have no number. Behind the first that has one, such a line is none.
  bool is_behind_seal(std::uint64_t line, bool has_number) const {
    return !has_number && first_sealed > 0 && line > first_sealed;
  }
};

/// What questions had taught at earlier times. Importance, which has changed since, is left out.
class earlier_feedback {
 public:
  earlier_feedback() = default;
  /// `questions`: oldest first.
  explicit earlier_feedback(std::vector<graph::learned_question> questions)
      : questions_(std::move(questions)) {}

  /// Those that were answered by then. No time may be before that of the call before it: each
  /// question is folded once.
  const memory::recall_feedback& at(utc_time then);

 private:
  std::vector<graph::learned_question> questions_;
  std::size_t folded_ = 0;
  memory::recall_feedback feedback_;
};

/// Brings the node's index up to the end of the log of facts, and answers from it. Lines that must
/// not be believed are passed over and counted. What stands behind the end that the node's recorder
/// has written is not read: it is another program's, or not durable yet. A log that is not the one
/// that was read (cut, replaced, put back from a backup) is read from its beginning. Blocking; one
/// thread.
class fact_reader {
 public:
  explicit fact_reader(node_context_ptr context);

  /// Takes over what has come since the last time. After an error the index is as it was before;
  /// what is at hand is read from it anew.
  result<void> catch_up(knowledge_index& index);

  /// Takes over up to where another reader has brought the index; reads nothing else.
  result<void> find_position(knowledge_index& index);

  /// What the log says of these items; those that it says nothing of are left out.
  result<std::map<std::string, context::item_statistics>>
  statistics(knowledge_index& index, const std::vector<std::string>& ids) const;

  /// What questions and outcomes have taught about entries of memory.
  const memory::recall_feedback& feedback() const { return feedback_; }
  /// How much is thought of entries that runs have tried, from here on.
  void weigh_by(context::confidence_rule rule);
  /// The questions that were answered by then, oldest first.
  static result<std::vector<graph::learned_question>> questions_until(knowledge_index& index,
                                                                      utc_time last);
  /// Whether a question was answered later than that.
  bool has_learned_since(utc_time at) const { return newest_question_ > at; }

  const log_position& position() const { return at_; }
  graph::segment_files& files() { return files_; }
  /// Hears of every item when it is read or has changed: `begin` before all of them come anew.
  struct item_watcher {
    std::function<void()> begin;
    std::function<void(std::string_view id, const graph::learned_item& item)> item;
  };
  void watch_items(item_watcher watcher) { watcher_ = std::move(watcher); }

  /// The index is another one now.
  void forget() { learner_.reset(); }

 private:
  /// The newest segment as it was at the last look.
  struct seen_end {
    std::uint32_t segment = 0;
    std::uint64_t size = 0;
    std::uint64_t inode = 0;

    bool operator==(const seen_end&) const = default;
  };

  result<void> load(knowledge_index& index);
  result<void> begin_anew(knowledge_index& index);
  /// The segments, without those that the node's recorder does not know.
  result<std::vector<graph::segment>> own_segments();
  /// How far this one is the recorder's; all of it where nobody says.
  std::uint64_t own_end(std::uint32_t segment) const;
  /// Whether the log's last line is the recorder's. Another one is soon set aside.
  result<bool> ends_as_written();
  result<seen_end> look_at_end(const std::vector<graph::segment>& segments);
  /// Whether the log before the position is still the one that was read.
  result<bool> is_same_log(const std::vector<graph::segment>& segments);
  result<void> read_segment(knowledge_index& index, const graph::segment& which, bool is_last);
  result<void> take_lines(knowledge_index& index, std::string_view lines);
  result<void> take_line(std::string_view line);
  result<void> save(knowledge_index& index);
  void learn(const graph::learned_question& question);
  void weigh(std::string_view id, const graph::learned_item& item);

  node_context_ptr context_;
  graph::segment_files files_;
  log_position at_;
  graph::written_log::end_view own_;        ///< how far the log is the node's own; empty: all of it
  std::optional<seen_end> seen_;            ///< nothing: not looked yet
  std::unique_ptr<graph::learner> learner_; ///< null: the index has to be read first
  graph::link_collector links_;
  knowledge_index* index_ = nullptr; ///< while it catches up
  memory::recall_feedback feedback_;
  std::unordered_map<std::string, context::item_statistics> tried_; ///< entries of memory, by id
  context::confidence_rule weighed_by_;
  utc_time newest_question_{};
  item_watcher watcher_;
};

} // namespace boyd
