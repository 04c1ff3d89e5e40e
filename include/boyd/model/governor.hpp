#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/model/trouble.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boyd::model {

/// After so many transient failures in a row nobody calls; after the wait one call tries (SPEC §8).
inline constexpr int breaker_failures = 5;
inline constexpr milliseconds breaker_wait = 30s;
/// The pause after a rate limit that names none, and the longest that is waited for: with a longer
/// one, calls are refused (`rate_limited`) until it is over, as with an open breaker.
inline constexpr milliseconds rate_limit_pause = 1s;
inline constexpr milliseconds longest_pause = 120s;
/// A provider cannot close itself for longer than this.
inline constexpr milliseconds longest_closure = 1h;
/// Calls that may wait for a place; beyond, a call is refused as overloaded.
inline constexpr std::size_t governor_queue = 16'384;

enum class breaker_state : std::uint8_t { closed, open, half_open };

/// One provider's limits: how many at once, requests and tokens per minute, pauses the provider
/// asks for, and the circuit breaker. Places are leases that end with their holder. Whose turn it
/// is: agents in turn (round robin), each agent's calls in order, so that one agent's many calls
/// never starve another. CAF-free; callers are opaque numbers. Not thread-safe.
///
/// The breaker counts trouble of the provider alone: unavailable, overloaded, bad_answer. Any other
/// answer (also a refusal, a wrong request or key, a missing model, no money) shows that it is
/// there and begins the count anew; rate limits pause and neither count nor clear, cancellations
/// say nothing. Calls granted before the breaker opened do not move it: the one that tries does.
///
/// Tokens: a call passes when the minute's rest covers its estimate, or is full; what it used in
/// the end takes the estimate's place. Calls wait in their order even if a later one would fit.
///
/// Invariants: in_use() never exceeds max_concurrent by a grant; a ticket is granted or refused at
/// most once; in the state half_open at most one call is under way that tries.
class governor_core {
 public:
  using ticket_id = std::uint64_t; ///< never 0, never used twice

  struct decision {
    ticket_id ticket = 0;
    bool granted = false;
    std::optional<trouble> why; ///< when it was refused
  };

  explicit governor_core(const config::provider& settings);

  void set_limits(const config::provider& settings);

  /// Asks for a place. `tokens`: what the call may use, estimated. The answer comes with decide().
  void ask(ticket_id ticket, const std::string& agent, std::int64_t tokens, steady_time now);
  /// Nobody waits for it any more, or the holder is gone; a granted one gives its place back
  /// without a word on how the call went.
  void drop(ticket_id ticket, steady_time now);
  /// A granted call ended: `used` tokens take the place of the estimate; `t` empty: well.
  void done(ticket_id ticket, std::int64_t used, const std::optional<trouble>& t, steady_time now);

  /// Grants and refusals due now. With an open breaker all who wait are refused at once
  /// (`unavailable`, retry_after = until it is half open), so that they can go elsewhere; while one
  /// call tries (half open), those who asked since then wait for how it ends.
  std::vector<decision> decide(steady_time now);

  /// When decide() may have something new without another event; nothing: only then.
  std::optional<steady_time> next_look() const;

  breaker_state breaker(steady_time now) const;
  int limit() const { return limits_.max_concurrent; }
  int in_use() const { return static_cast<int>(granted_.size()); }
  std::size_t waiting() const { return waiting_count_; }
  /// The last failure in words; empty after a success.
  const std::string& last_trouble() const { return last_trouble_; }

 private:
  struct call {
    ticket_id ticket = 0;
    std::int64_t tokens = 0;
  };
  struct held {
    std::int64_t tokens = 0;
    bool trying = false; ///< the one call of a half open breaker
  };

  std::int64_t places() const;
  void fill(steady_time now);
  std::optional<call> take_next();
  bool remove_waiting(ticket_id ticket);
  void refuse_waiting(const trouble& why, std::vector<decision>& out);
  std::optional<trouble> closed_because(steady_time now) const;
  bool fits(const call& next) const;
  void learn(const std::optional<trouble>& t, bool trying, steady_time now);

  config::provider limits_;
  std::map<std::string, std::deque<call>> waiting_; ///< by agent; none is empty
  std::deque<std::string> turn_;                    ///< the same agents, next first
  std::map<ticket_id, std::string> agent_of_;       ///< of those who wait
  std::size_t waiting_count_ = 0;
  std::map<ticket_id, held> granted_;
  std::vector<decision> refused_; ///< at once, when they asked
  // Token buckets: filled evenly, at most one minute's worth. Tokens may go below 0: a call that
  // used more than it said is paid for by those that come later.
  double requests_left_ = 0;
  double tokens_left_ = 0;
  std::optional<steady_time> filled_at_;
  steady_time paused_until_ = steady_time::min(); ///< Retry-After
  int failures_ = 0;                              ///< in a row
  std::optional<steady_time> opened_at_;
  bool trying_ = false;
  std::string last_trouble_;
};

} // namespace boyd::model
