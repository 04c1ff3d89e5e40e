#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// How long a run that was lost in a crash keeps the next one waiting, unless it ends before: what
/// ends its node mostly does so at once. With many of them less, so that all of them do not take
/// longer than the second figure.
inline constexpr milliseconds crash_probation = 2s;
inline constexpr milliseconds crash_probation_of_all = 60s;

/// Who gets permits: at most `node` at once, at most so many per kernel, best priority first, then
/// who has waited longest. Permits are leases that end with their holder. CAF-free; holders are
/// opaque numbers. Invariant: in_use() never exceeds the limit by a grant (a lowered limit lets
/// what runs finish), and every permit belongs to a known holder.
class permit_core {
 public:
  using holder_id = std::uint64_t; ///< never 0

  struct grant {
    holder_id holder = 0;
    int count = 0;
  };

  void set_limits(int node, const std::vector<std::pair<std::string, int>>& kernels);

  /// Replaces the holder's wish; `count` 0 withdraws it.
  void wish(holder_id holder, const std::string& name, const std::string& kernel, int count,
            int priority);
  /// Takes back at most what the holder has.
  void release(holder_id holder, int count);
  /// The holder is gone: its permits and its wish end.
  void gone(holder_id holder);

  /// The next `runs` permits go out one by one: each when the one before it is back or outlived().
  void pace(int runs);
  /// The permit on probation has been out long enough.
  void outlived();
  bool on_probation() const { return probation_ != 0; }

  /// Hands out what may be handed out now.
  std::vector<grant> distribute();

  int limit() const { return node_limit_; }
  int in_use() const { return in_use_; }
  /// The most permits that were ever out at once.
  int peak() const { return peak_; }
  /// Holders with permits, by name.
  std::vector<std::pair<std::string, int>> holders() const;

 private:
  struct holder {
    std::string name;
    std::string kernel;
    int held = 0;
    int wanted = 0;
    int priority = 0;
    std::uint64_t since = 0; ///< order of the wish, for fairness
  };

  int kernel_room(const std::string& kernel) const;
  int room(const std::string& kernel) const;

  int node_limit_ = 0;
  std::map<std::string, int> kernel_limits_;
  std::map<std::string, int> kernel_in_use_;
  std::map<holder_id, holder> holders_;
  int in_use_ = 0;
  int peak_ = 0;
  std::uint64_t next_turn_ = 0;
  int paced_ = 0;           ///< permits that are still to go out one by one
  holder_id probation_ = 0; ///< who has the last of them; 0: nobody
};

} // namespace boyd
