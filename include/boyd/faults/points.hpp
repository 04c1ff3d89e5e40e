#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/faults/catalogue.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Named places where a person or a test may let something go wrong (docs/reliability.md). Off
/// unless armed: then one relaxed load each. What is armed belongs to the process. Threads: any.
namespace boyd::faults {

/// Who armed a fault.
enum class origin : std::uint8_t { configuration, environment, command, test };

/// One armed fault.
struct arming {
  std::string point;
  action what = action::error;
  int count = 1;                       ///< how often at most; negative: without end
  double probability = 1.0;            ///< of each pass that counts
  milliseconds delay{0};               ///< for action::delay
  std::int64_t after = 0;              ///< this many passes go well first
  std::int64_t every = 1;              ///< from then on each pass, each second one, …
  std::optional<std::uint64_t> seed{}; ///< decides probabilities and bits; else drawn when armed
  origin by = origin::test;
};

/// `arming::count` of a number as people write it: 0 is without end.
constexpr int count_of_strikes(int written) {
  return written == 0 ? -1 : written;
}

/// A fault that is armed, or was until its count was used up.
struct armed_fault {
  arming what;
  std::uint64_t passes = 0;  ///< of its point since it was armed
  std::uint64_t strikes = 0; ///< how often it was let loose
  bool spent = false;        ///< its count is used up
};

/// The name of every point, sorted.
const std::vector<std::string_view>& points();

/// The catalogue's row, or null.
const point_info* find(std::string_view point) noexcept;

std::string_view name_of(action a) noexcept;
std::optional<action> action_of(std::string_view name) noexcept;
std::string_view name_of(origin o) noexcept;

/// "crash, error or delay".
std::string to_text(action_set all);

/// "store.apply error, 3 times, after 5": for logs and status.
std::string to_text(const arming& a);

/// Whether it can be armed: `not_found` names the nearest point, `refused` says what the point can
/// do, `invalid_argument` which number makes no sense.
result<void> check(const arming& a);

/// Reads what BOYD_FAULTS holds, in the words of the configuration:
/// "store.apply=error,count=3,probability=0.1,after=5;executor.run=crash". `prob` is short for
/// probability. Everything is checked.
result<std::vector<arming>> parse(std::string_view words);

/// Arms faults, on top of earlier ones: all of them or, with an error of `check`, none. `seed`
/// decides for those that have none. Each is logged.
result<void> arm(const std::vector<arming>& faults, std::uint64_t seed);

/// Ends all faults, and the delays that are being waited for.
void disarm();
/// Ends those that came this way; returns how many.
std::size_t disarm(origin by);

/// What is armed, and what is spent, in the order of arming.
std::vector<armed_fault> armed();

/// How often a fault was let loose at `point` since the process started.
std::uint64_t triggered(std::string_view point);

/// A set of faults of its own for the thread that makes it, until it ends there: for a simulation,
/// whose nodes live on one thread while others simulate other nodes. In the thread, everything here
/// means this set; the process's own set is not concerned. The last one made counts.
class isolation {
 public:
  isolation();
  ~isolation();
  isolation(const isolation&) = delete;
  isolation& operator=(const isolation&) = delete;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// What the passer must do itself: wait, lose the message, change the bytes.
struct effect {
  std::optional<action> what; ///< delay, drop or corrupt; nothing: go on
  milliseconds delay{0};
  std::uint64_t salt = 0; ///< picks the bit

  bool drops() const { return what == action::drop; }
  bool corrupts() const { return what == action::corrupt; }
};

/// Waits as `action::delay` does: no longer than the faults are armed. `since`: counts as cut short
/// from the start when faults were disarmed after that number (see `disarmings`).
void wait(milliseconds delay);
void wait(milliseconds delay, std::uint64_t since);

/// How often faults have been disarmed.
std::uint64_t disarmings();

/// `bytes` with one bit changed, any: for what has a check sum, or is compared. A changed line may
/// be well-formed and say something else.
std::string damaged(std::string_view bytes, std::uint64_t salt);

/// `bytes` with one bit changed, the highest of one byte: no UTF-8 text is UTF-8 any more then. For
/// what is told by its form alone.
std::string malformed(std::string_view bytes, std::uint64_t salt);

namespace detail {
extern std::atomic<int> armed_sets;
result<effect> meet_armed(point p);
result<void> pass_armed(point p);
} // namespace detail

/// False: nothing is armed, and nobody needs to look further.
inline bool any_armed() {
  return detail::armed_sets.load(std::memory_order_relaxed) > 0;
}

/// Passes a point where more can happen than a crash or an error: the caller looks at the effect.
/// Throws std::runtime_error, naming the point, for a crash; fails with errc::injected.
inline result<effect> meet(point p) {
  if (!any_armed())
    return effect{};
  return detail::meet_armed(p);
}

/// Passes a point that can only crash, fail or make its thread wait.
inline result<void> pass(point p) {
  if (!any_armed())
    return {};
  return detail::pass_armed(p);
}

/// Passes a point that can only crash.
inline void may_crash(point p) {
  if (any_armed())
    (void)detail::pass_armed(p);
}

/// Passes a point where a notice can be lost: true when it is.
inline bool lost(point p) {
  if (!any_armed())
    return false;
  const auto met = detail::meet_armed(p);
  return met && met->drops();
}

} // namespace boyd::faults
