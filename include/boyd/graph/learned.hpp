#pragma once

#include "boyd/context/item.hpp"
#include "boyd/core/result.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/graph/skill_uses.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// What the log of facts teaches about items (docs/context.md, docs/knowledge.md): a fold over its
/// lines. Pure.
namespace boyd::graph {

/// The numbers of the fold: a replay of the policy takes others.
struct learning_rules {
  double success_step = 0.05; ///< that a success adds to an item's confidence
  double failure_step = 0.1;  ///< that a failure takes
  double least_accuracy =
      0.5; ///< of citations that are enforced; below it a run's end teaches nothing
  /// Runs whose outcome is waited for; of the oldest beyond them nothing is learned.
  std::size_t most_open_runs = 10'000;

  bool operator==(const learning_rules&) const = default;
};

/// What the log says of one item.
struct learned_item {
  context::item_statistics counts;
  std::string path;
  context::item_type type = context::item_type::file;
  std::string hash;                         ///< of its content, the latest time
  bool frozen = false;                      ///< the latest time
  std::string scope{};                      ///< that its path begins at; empty: not told
  std::vector<std::string> kernels{};       ///< whose runs were shown it
  std::vector<std::string> referenced_by{}; ///< the latest executions that cited it
  std::string stage{};                      ///< that the log was told of last; empty: none was
  /// What a person took back, as long as nothing about the item has changed since; open: nothing.
  context::standing undone = context::standing::open;

  bool operator==(const learned_item&) const = default;
};

std::string to_text(const learned_item& item);
/// Nothing: it is none.
std::optional<learned_item> read_learned_item(std::string_view text);

/// A question, and the entries of memory that a run cited which ended well.
struct learned_question {
  std::string text;
  std::vector<std::string> items;
  utc_time at{}; ///< end of the run

  bool operator==(const learned_question&) const = default;
};

std::string to_text(const learned_question& q);
std::optional<learned_question> read_learned_question(std::string_view text);

/// What one fact's end of a run means for what it used.
enum class credit : std::uint8_t {
  none, ///< a transient failure, or one of the environment or policy; or a run that is weak
  success,
  failure,
};

/// By the meta of a `resulted_in` (docs/context.md): verified success, a failure that is the
/// content's fault, or neither.
credit credit_of(std::string_view outcome_meta);

/// Folds facts, in the order of the log. What it has learned is read from the index when it is
/// needed, and changes are taken out for it. Not thread-safe.
class learner {
 public:
  /// Reads a value of the index.
  using look_up =
      std::function<result<std::optional<std::string>>(index_area area, const std::string& key)>;

  learner(learning_rules rules, look_up look)
      : rules_(rules), look_(std::move(look)),
        skills_({.success_step = rules.success_step, .failure_step = rules.failure_step}, look_),
        uses_(look_) {}

  /// One value of index_area::open_runs, before the first fact; in the order of their keys.
  void resume_run(std::string_view key, std::string_view value);

  /// `line`: its number in the log. An error is the index's.
  result<void> take(const edge& fact, std::uint64_t line);

  /// An item as it is now; null: it is not at hand. Until the next call.
  const learned_item* at_hand(const std::string& id) const {
    const auto it = items_.find(id);
    return it == items_.end() ? nullptr : &it->second.item;
  }

  /// Hands over what has changed since it was called last.
  void each_change(const std::function<void(const index_change& c)>& put);
  /// The items among what was handed over last, in order: they are at hand until `let_go`.
  const std::vector<std::string>& saved_items() const { return saved_items_; }
  /// Items that have changed and were not handed over: they cannot be let go.
  std::size_t changed_items() const { return changed_items_.size(); }
  /// What was handed over is in the index: of many items those that have rested are read from it
  /// again when they are needed.
  void let_go();
  /// All of it at once: what has changed since it was taken last, as the index has it from now on.
  std::vector<index_change> take_changes();
  /// Questions that have been learned since they were taken last.
  std::vector<learned_question> take_questions() { return std::exchange(fresh_, {}); }
  /// In the place of both, for a fold that no index keeps: what it has learned stays at hand.
  void drop_changes();

  /// From here on these numbers hold; what was learned before stays as it is.
  void change_rules(const learning_rules& rules);

 private:
  /// An item that a run used.
  struct used_item {
    std::string id;
    bool cited = false;
    bool counts = false; ///< its run's outcome is its own
  };
  struct open_run {
    std::string number; ///< key in the index: by age
    std::vector<used_item> items;
    bool changed = true;
  };

  result<void> take_use(const edge& fact, std::uint64_t line);
  result<void> take_outcome(const edge& fact, std::uint64_t line);
  result<void> take_support(const edge& fact);
  result<void> take_one(const edge& fact);
  result<void> hold(const edge& fact, const std::string& decision, std::size_t parts);
  /// What rules and people have decided about an item.
  result<void> take_decision(const edge& fact);
  struct item_at_hand {
    learned_item item;
    std::uint64_t line = 0;              ///< of its latest use; 0: it was not used since it is here
    std::optional<utc_time> listed_at{}; ///< its last use, as the list of the index has it
    std::uint32_t saves = 0;             ///< that there had been when it changed last
    bool changed = false;
    bool listed = false; ///< in items_by_use
    bool noisy = false;  ///< in noisy_items
  };

  result<item_at_hand*> changing_at_hand(const std::string& id);
  void list(const std::string& id, item_at_hand& known,
            const std::function<void(const index_change& c)>& put) const;

  /// An item that is about to change.
  result<learned_item*> changing(const std::string& id);
  void drop_oldest();

  learning_rules rules_;
  look_up look_;
  skill_fold skills_;
  skill_use_fold uses_;
  std::unordered_map<std::string, item_at_hand> items_;
  std::vector<std::string> changed_items_;
  std::vector<std::string> saved_items_;
  std::uint32_t saves_ = 0;
  std::unordered_map<std::string, open_run> runs_; ///< by execution and fence
  std::map<std::string, std::string> ages_;        ///< open_run::number to its key
  std::map<std::string, std::vector<edge>> held_;  ///< by decision; those that were looked up
  std::unordered_set<std::string> changed_held_;
  std::vector<index_change> changes_; ///< besides those of items and open runs
  std::vector<learned_question> fresh_;
};

} // namespace boyd::graph
