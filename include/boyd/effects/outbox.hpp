#pragma once

#include "boyd/effects/effect.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boyd::effects {

/// The effects of one kernel that are not done: which one comes next, and what the store is to be
/// told of them. Values and decisions alone. Not thread-safe.
class outbox {
 public:
  /// So many are kept in memory, the oldest ones; the others wait in the store until these are
  /// done.
  static constexpr std::size_t most_open = 512;

  /// What the store has, in the place of what was known.
  void load(std::vector<effect> all);
  /// The store has more than is open here: to be loaded again when none is.
  bool is_cut() const { return is_cut_; }

  /// Gives new effects their numbers: they are about to be written with their cycle. Asked again
  /// before `add`, it gives the same ones: a record whose fate is unknown is written once more.
  void number(std::vector<effect>& fresh) const;
  /// They stand in the store now.
  void add(std::vector<effect> fresh);

  /// By number.
  const std::vector<effect>& open() const { return open_; }
  /// The oldest of its kind; null: there is none.
  const effect* first(effect_kind kind) const;

  /// It is done, or never will be.
  void done(std::uint64_t number);
  /// A try has failed; the next one is late.
  void failed(std::uint64_t number, const std::string& why);
  /// Commits of earlier cycles that are gone are made again, before all others.
  void again(std::vector<effect> lost);

  /// What the store does not know yet: values by key, an empty one removes.
  const std::map<std::string, std::string>& changes() const { return changes_; }
  /// The store has these; what has changed since then stays.
  void saved(const std::map<std::string, std::string>& changes);

 private:
  void note(const effect& e);

  std::vector<effect> open_;
  std::uint64_t last_number_ = 0;
  bool is_cut_ = false;
  std::map<std::string, std::string> changes_;
};

} // namespace boyd::effects
