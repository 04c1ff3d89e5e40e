#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// Who gets permits: at most `node` at once, at most so many per kernel, best priority first, then
/// who has waited longest. Permits are leases that end with their holder. CAF-free; holders are
/// opaque numbers. Invariant: in_use() never exceeds the limit by a grant (a lowered limit lets
/// what runs finish), and every permit belongs to a known holder.
class permit_core {
 public:
  using holder_id = std::uint64_t;

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

  int node_limit_ = 0;
  std::map<std::string, int> kernel_limits_;
  std::map<std::string, int> kernel_in_use_;
  std::map<holder_id, holder> holders_;
  int in_use_ = 0;
  int peak_ = 0;
  std::uint64_t next_turn_ = 0;
};

} // namespace boyd
