#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the log of facts says of the uses of skills, for `findings` (docs/knowledge.md): a part of
/// the fold. Pure.
namespace boyd::graph {

/// The uses of one text of a skill.
struct text_uses {
  std::int64_t version = 0;            ///< the first that had this text; 0: the log names none
  std::string newest{};                ///< of its latest uses, newest last: + and -, 0 taught none
  std::optional<utc_time> last_used{}; ///< of the line that follows
  std::uint64_t used_line = 0;
  std::vector<std::string> helped{}; ///< agents whose runs followed it with success, two at most
  std::vector<std::string> failed{}; ///< and without

  bool operator==(const text_uses&) const = default;

  std::size_t failures() const;
};

/// Of any skill that the log names, also one of an older log that no bytes belong to. It is judged
/// by the uses of the text that is in force: after a rollback those of the version that is back.
struct skill_uses {
  bool approved = false;
  bool has_source = false;
  std::uint64_t line = 0;   ///< the latest that names it
  std::int64_t version = 0; ///< the newest, of the hash that follows
  std::string hash{};
  std::optional<utc_time> begun{};           ///< when it was approved
  std::vector<text_uses> texts{text_uses{}}; ///< the one in force last
  /// Versions that had an earlier one's text, and the first that had it; the newest last.
  std::vector<std::pair<std::int64_t, std::int64_t>> repeated{};

  bool operator==(const skill_uses&) const = default;

  const text_uses& in_force() const { return texts.back(); }
  bool is_orphaned() const { return approved && !has_source; }
  bool is_failing() const;
  /// It helped one agent alone, and failed for another.
  bool is_overfitted() const;
};

std::string to_text(const skill_uses& s);
/// Nothing: it is none.
std::optional<skill_uses> read_skill_uses(std::string_view text);

/// What index_area::skill_faults tells: a key is the skill's name and one of these.
inline constexpr std::string_view orphaned_skill = "orphaned";
inline constexpr std::string_view failing_skill = "failing";
inline constexpr std::string_view overfitted_skill = "overfitted";
/// Name and fault in a key.
std::pair<std::string, std::string> fault_in_key(std::string_view key);

/// Folds the facts that name skills, in the order of the log. Not thread-safe.
class skill_use_fold {
 public:
  using look_up =
      std::function<result<std::optional<std::string>>(index_area area, const std::string& key)>;

  explicit skill_use_fold(look_up look) : look_(std::move(look)) {}

  /// Any fact; those about something else change nothing. An error is the index's.
  result<void> take(const edge& fact, std::uint64_t line);
  /// Hands over what has changed since it was called last.
  void each_change(const std::function<void(const index_change& c)>& put);
  /// Nobody wants to know what has changed.
  void drop_changes() { changed_.clear(); }

 private:
  struct skill_at_hand {
    skill_uses now;
    std::set<std::string> listed;    ///< keys of skill_faults
    std::optional<std::string> aged; ///< key of skills_by_use
  };

  result<skill_at_hand*> changing(const std::string& name);

  look_up look_;
  std::map<std::string, skill_at_hand> skills_;
  std::set<std::string> changed_;
};

} // namespace boyd::graph
