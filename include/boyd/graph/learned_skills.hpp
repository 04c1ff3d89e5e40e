#pragma once

#include "boyd/context/item.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the log of facts says of candidates and skills (docs/skills.md): a part of the fold. Pure.
namespace boyd::graph {

/// "skill_KERNEL/NAME".
std::string skill_id(std::string_view kernel_id, std::string_view name);

/// Kernel and name of such an id; nothing for any other.
std::optional<std::pair<std::string, std::string>> names_in_skill_id(std::string_view id);

/// Bytes that a person, or a policy that a person has set, has approved.
struct skill_version {
  std::int64_t number = 0;
  std::string hash; ///< SHA-256 of SKILL.md
  std::string by;
  std::string reason;
  utc_time at{};

  bool operator==(const skill_version&) const = default;
};

/// The reason that the facts of a rollback give, and the number of the version in it; nothing for
/// any other reason. `why`: what the person said; may be empty.
std::string rollback_reason(std::int64_t version, std::string_view why);
std::optional<std::int64_t> version_in_rollback(std::string_view reason);

struct learned_skill {
  context::item_statistics counts; ///< of runs that declared it
  std::string recent{};            ///< outcomes of its latest uses, newest last: + and -
  std::int64_t streak = 0;         ///< successes in a row
  bool degraded = false;
  bool disabled = false;                 ///< by hand
  std::vector<skill_version> versions{}; ///< in their order
  std::vector<std::string> sources{};    ///< ids of the contexts that it comes from
  utc_time touched{};                    ///< by a person, the last time
  std::string told{};                    ///< the state that the log was told of last, by a rule

  bool operator==(const learned_skill&) const = default;
};

enum class candidate_status : std::uint8_t { pending, approved, rejected, deferred };

std::string_view name_of(candidate_status s) noexcept;

/// An item that may become a skill; one for each scope and path.
struct learned_candidate {
  std::string context_id;
  std::string kernel_id; ///< that found it first
  std::string scope;
  std::string path;
  candidate_status status = candidate_status::pending; ///< as decided last
  std::int64_t evidence = 0; ///< references to the item when it was decided
  std::string skill{};       ///< id of the skill that it has become
  std::string by{};          ///< who decided
  std::string reason{};
  double confidence = 0; ///< when it was made
  utc_time created{};

  bool operator==(const learned_candidate&) const = default;
};

std::string to_text(const learned_skill& s);
std::optional<learned_skill> read_learned_skill(std::string_view text);
std::string to_text(const learned_candidate& c);
std::optional<learned_candidate> read_learned_candidate(std::string_view text);

/// The numbers of the fold of skills.
struct skill_rules {
  double success_step = 0.05;
  double failure_step = 0.1;
  double degrade_confidence = 0.4;     ///< below it a failure degrades
  std::int64_t degrade_failures = 3;   ///< or so many
  std::size_t recent_uses = 5;         ///< among so many latest uses
  std::int64_t recover_successes = 2;  ///< in a row
  double confidence_of_imported = 0.7; ///< a person chose it

  bool operator==(const skill_rules&) const = default;
};

/// Folds the facts about candidates and skills, in the order of the log. Not thread-safe.
class skill_fold {
 public:
  /// Reads a value of the index.
  using look_up =
      std::function<result<std::optional<std::string>>(index_area area, const std::string& key)>;

  skill_fold(skill_rules rules, look_up look) : rules_(rules), look_(std::move(look)) {}

  /// Any fact; those about something else change nothing. An error is the index's.
  result<void> take(const edge& fact);

  /// Adds what has changed since it was called last.
  void add_changes(std::vector<index_change>& to);
  /// Nobody wants to know what has changed.
  void drop_changes() {
    changed_skills_.clear();
    changed_candidates_.clear();
  }
  /// From here on these numbers hold.
  void change_rules(const skill_rules& rules) { rules_ = rules; }

 private:
  result<learned_skill*> skill(const std::string& id);
  result<learned_candidate*> candidate(const std::string& id);
  result<void> take_candidate(const edge& fact);
  result<void> take_approval(const edge& fact);
  result<void> take_use(const edge& fact);
  result<void> take_source(const edge& fact);
  result<void> take_decision(const edge& fact);

  skill_rules rules_;
  look_up look_;
  std::map<std::string, learned_skill> skills_;
  std::map<std::string, learned_candidate> candidates_;
  std::set<std::string> changed_skills_;
  std::set<std::string> changed_candidates_;
};

} // namespace boyd::graph
