#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Calls of models on record, one by one, and their release by a person, as operations of the
/// durable store. Reservations and sums stand in boyd/ports/dispatch_store.hpp.
namespace boyd::store {

/// Tokens and money. `cost` is in millionths of a US dollar; reasoning tokens are part of the
/// output, cached ones part of the input.
struct usage_counts {
  std::int64_t input = 0;
  std::int64_t cached = 0;
  std::int64_t output = 0;
  std::int64_t reasoning = 0;
  std::int64_t cost = 0;

  std::int64_t tokens() const { return input + output; }
  bool operator==(const usage_counts&) const = default;
};

/// A person's statement that a call did not use all that is counted for it.
struct spend_release {
  utc_time at{};
  std::string by;
  std::string reason;
  std::int64_t tokens = 0; ///< given back in all
  std::int64_t cost = 0;   ///< the same, in millionths of a US dollar

  bool operator==(const spend_release&) const = default;
};

/// One call of a model, or one run of an agent CLI, which is reserved as a whole.
struct spend_call {
  std::string call_id; ///< <dispatch_id>/<fence>/<number of the call>
  std::string day;     ///< YYYY-MM-DD, in whose budgets it counts
  utc_time created_at{};
  std::string dispatch_id; ///< of a planner or reducer: <cycle_id>/<voice>
  std::string kernel_id;
  std::string agent_id;
  std::string provider_id;
  std::string model;
  usage_counts counts; ///< as it counts now
  bool settled = false;
  std::optional<spend_release> release; ///< the latest

  /// It counts as the most that the call may use, and nobody has said anything else.
  bool is_open() const { return !settled && !release; }
  bool operator==(const spend_call&) const = default;
};

/// Calls from `from_day` until `to_day` (as for sum_spend), newest first, then by call_id.
struct list_spend {
  using reply = std::vector<spend_call>;
  std::string from_day;
  std::string to_day;
  std::string kernel_id;  ///< empty: all
  std::string call_id;    ///< only those that begin with it, of any day; empty: any
  bool open_only = false; ///< only those that hold a reservation
  std::size_t limit = 100;
};

/// Lowers what a call counts for to what it used, as a person says; its day's totals follow. A call
/// that is still under way is released only by `force`; what it reports later counts. A repeat
/// changes nothing.
struct release_spend {
  enum class outcome_t : std::uint8_t {
    released,  ///< or it counted for no more already
    not_found, ///< no such call
    running,   ///< its run, or its cycle, is under way
    more       ///< it counts for less: a release adds nothing
  };
  struct reply {
    outcome_t outcome = outcome_t::not_found;
    std::optional<spend_call> call; ///< as it stands now
  };
  std::string call_id;
  std::int64_t used_tokens = 0; ///< what is left counted
  std::int64_t used_cost = 0;   ///< the same, in millionths of a US dollar
  std::string by;
  std::string reason;
  bool force = false;
};

} // namespace boyd::store
