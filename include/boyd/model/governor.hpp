#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/model/chat.hpp"
#include "boyd/model/trouble.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boyd::model {

/// After so many transient failures in a row nobody calls; after the wait one call tries
/// (docs/executors.md).
inline constexpr int breaker_failures = 5;
inline constexpr milliseconds breaker_wait = 30s;
/// The pause after a rate limit that names none, and the longest that is waited for: with a longer
/// one, calls are refused (`rate_limited`) until it is over, as with an open breaker.
inline constexpr milliseconds rate_limit_pause = 1s;
inline constexpr milliseconds longest_pause = 120s;
/// A model cannot be closed by what its provider asks for longer than this.
inline constexpr milliseconds longest_closure = 1h;
/// Calls that may wait for a place; beyond, a call is refused as overloaded.
inline constexpr std::size_t governor_queue = 16'384;
/// Agents whose bad answers are counted at once.
inline constexpr std::size_t counted_agents = 4096;
/// Models whose counts are remembered; others keep the plain estimate.
inline constexpr std::size_t counted_models = 256;
/// An estimate is corrected within these bounds: a count is the provider's word, and may be wrong.
inline constexpr double least_ratio = 0.5;
inline constexpr double most_ratio = 4;
/// Of the agents that wait so many are compared when a place is free.
inline constexpr std::size_t compared_agents = 256;

enum class breaker_state : std::uint8_t { closed, open, half_open };

/// One provider's limits: how many at once, requests and tokens per minute, and by model the pauses
/// the provider asks for and the circuit breakers. Places are leases that end with their holder.
/// Whose turn it is: of the agents that wait, the one with the fewest places; of several, in turn
/// (round robin); each agent's calls in order. So one agent's many calls, also those that hang,
/// never starve another. CAF-free; callers are opaque numbers. Not thread-safe.
///
/// Each model has a breaker of its own: behind one address may be many models, of which one is
/// missing. It counts trouble of the provider alone: unavailable, overloaded. A bad answer may be
/// one agent's model or request: so many of it in a row as open a breaker close the provider to
/// that agent alone, for as long (`bad_answer`), and say nothing to the others. Any other answer
/// (also a refusal, a wrong request or key, a missing model, no money) shows that it is there and
/// begins the count anew; rate limits pause and neither count nor clear, cancellations say nothing.
/// A pause, too, is of the model whose call was answered so: a limit that the whole account has is
/// told to each model by one call of its own.
/// Calls granted before a breaker opened do not move it: the one that tries does.
///
/// Tokens: a call passes when the minute's rest covers its estimate, or is full; what it used in
/// the end takes the estimate's place. Calls wait in their order even if a later one would fit.
/// What is used beyond the estimate takes at most the next minute: a count is the provider's word,
/// and a wrong one must not close it for ever.
///
/// Invariants: in_use() never exceeds max_concurrent by a grant; a ticket is granted or refused at
/// most once; of a model in the state half_open at most one call is under way that tries.
class governor_core {
 public:
  using ticket_id = std::uint64_t; ///< never 0, never used twice

  struct decision {
    ticket_id ticket = 0;
    bool granted = false;
    std::optional<trouble> why; ///< when it was refused
    double input_ratio = 1;     ///< when it was granted, see `input_ratio`
  };

  explicit governor_core(const config::provider& settings);

  void set_limits(const config::provider& settings);

  /// Asks for a place. `tokens`: what the call may use, estimated. The answer comes with decide().
  void ask(ticket_id ticket, const std::string& agent, std::int64_t tokens, steady_time now,
           const std::string& model = {});
  /// Nobody waits for it any more, or the holder is gone; a granted one gives its place back
  /// without a word on how the call went.
  void drop(ticket_id ticket, steady_time now);
  /// A granted call ended: `used` tokens take the place of the estimate; `t` empty: well. `counted`
  /// corrects later estimates of its model (docs/context.md).
  void done(ticket_id ticket, std::int64_t used, const std::optional<trouble>& t, steady_time now,
            const std::optional<input_count>& counted = {});

  /// Tokens that this model counts for each estimated one: a moving mean of its conversations,
  /// within least_ratio and most_ratio; 1 for a model that has not counted yet.
  double input_ratio(const std::string& model) const;

  /// Grants and refusals due now. With an open breaker all who wait for its model are refused at
  /// once (`unavailable`, retry_after = until it is half open), so that they can go elsewhere;
  /// while one call tries (half open), those who asked since then wait for how it ends.
  std::vector<decision> decide(steady_time now);

  /// When decide() may have something new without another event; nothing: only then.
  std::optional<steady_time> next_look() const;

  struct open_model {
    std::string name;
    breaker_state state = breaker_state::open;
    std::string last; ///< its last failure in words
  };
  /// The models whose breakers are not closed.
  std::vector<open_model> open_models(steady_time now) const;
  /// The worst of them.
  breaker_state breaker(steady_time now) const;
  int limit() const { return limits_.max_concurrent; }
  int in_use() const { return static_cast<int>(granted_.size()); }
  std::size_t waiting() const { return waiting_count_; }
  /// The last failure in words, of a model whose breaker is open first; empty after a success.
  std::string last_trouble() const;

 private:
  struct call {
    ticket_id ticket = 0;
    std::int64_t tokens = 0;
    std::string model;
  };
  struct held {
    std::string agent;
    std::int64_t tokens = 0;
    std::string model;
    bool trying = false; ///< the one call of a half open breaker
  };
  /// Of a model that fails; one that answers has none.
  struct circuit {
    int failures = 0; ///< in a row
    std::optional<steady_time> opened_at;
    bool trying = false;
    std::string last;
  };
  /// The agents that wait, next first.
  using line = std::deque<std::string>;

  std::int64_t places() const;
  void fill(steady_time now);
  line::const_iterator next_in_line(steady_time now) const;
  call take(line::const_iterator whose);
  void grant(line::const_iterator whose);
  void free_place(std::map<ticket_id, held>::iterator place);
  bool remove_waiting(ticket_id ticket);
  void refuse_closed(steady_time now, std::vector<decision>& out);
  std::optional<trouble> closed_because(const std::string& model, steady_time now) const;
  std::optional<trouble> pause_because(const std::string& model, steady_time now) const;
  bool has_to_wait(const std::string& model, steady_time now) const;
  std::optional<steady_time> first_pause_over() const;
  bool fits(const call& next) const;
  void learn(const std::string& model, const std::optional<trouble>& t, bool trying,
             steady_time now);

  config::provider limits_;
  std::map<std::string, std::deque<call>> waiting_; ///< by agent; none is empty
  line turn_;                                       ///< the same agents
  std::map<ticket_id, std::string> agent_of_;       ///< of those who wait
  std::size_t waiting_count_ = 0;
  std::map<ticket_id, held> granted_;
  std::map<std::string, std::size_t> holds_; ///< places of each agent that has one
  std::vector<decision> refused_;            ///< at once, when they asked
  // Token buckets: filled evenly, at most one minute's worth. Tokens may go below 0: a call that
  // used more than it said is paid for by those that come later, up to a minute's worth.
  double requests_left_ = 0;
  double tokens_left_ = 0;
  std::optional<steady_time> filled_at_;
  /// What a provider asked for (Retry-After).
  struct asked_pause {
    steady_time until = steady_time::min();
    std::string last; ///< its words
  };
  std::map<std::string, asked_pause> pauses_; ///< by model; those that are over go with the next
  std::map<std::string, circuit> circuits_;   ///< by model
  std::string last_trouble_;
  /// Of agents whose last answer was a bad one.
  struct nonsense {
    int answers = 0; ///< in a row
    steady_time closed_until = steady_time::min();
    std::string last;
  };
  void learn_nonsense(const std::string& agent, const std::optional<trouble>& t, steady_time now);
  std::map<std::string, nonsense> nonsense_;
  void note_count(const std::string& model, const input_count& count);
  std::map<std::string, double> ratios_; ///< by model, at most counted_models
};

} // namespace boyd::model
