#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The inbox of what people are to decide, as operations of the durable store (docs/executors.md).
/// What may become of a request is decided by boyd/queue/approvals.hpp, the same for all stores.
namespace boyd::store {

/// Where a request stands. Only the first two can still change.
enum class approval_state : std::uint8_t {
  pending,   ///< waits for a person
  approved,  ///< may be used, once, until it expires
  rejected,  ///< a person said no
  expired,   ///< its time was over before it was used
  withdrawn, ///< its run is over, or waits no longer
  voided,    ///< what was to be done is not what was approved
  used       ///< the action was let through
};

/// What exactly is asked for. Every member is part of the request's hash.
struct approval_matter {
  std::string kernel_id;
  std::string agent_id;
  std::string dispatch_id;
  std::string tool;
  std::string arguments_sha256; ///< of the arguments, byte for byte
  std::string workspace;        ///< absolute
  /// Of the file that would be replaced, or of all files that a command may meet, as they were when
  /// the person was asked (queue::unbound_mark); empty: there are none.
  std::string before_sha256;
  std::string shown; ///< what a person reads: all of the arguments, secrets redacted

  bool operator==(const approval_matter&) const = default;
};

/// A request and what became of it.
struct approval {
  std::string approval_id;
  approval_matter matter;
  std::string hash;       ///< of approval_id, matter and expires_at (queue::approval_hash)
  std::string reason;     ///< why a person is asked: the policy's word
  std::string node_id;    ///< that asked
  std::int64_t fence = 0; ///< of the run that may use it
  /// The run is over and the request waits for the dispatch's next one.
  bool held = false;
  approval_state state = approval_state::pending;
  utc_time created_at{};
  utc_time expires_at{};
  std::optional<utc_time> decided_at;
  std::string decided_by;
  std::string note; ///< the person's
  std::optional<utc_time> ended_at;
  std::string decision_id; ///< of the decision that was taken; makes its repeat harmless
  std::string use_id;      ///< of the use that was granted; the same
  std::int64_t lines = 0;  ///< of its trail, those that were not kept included

  bool operator==(const approval&) const = default;
};

/// What came of an attempt to change a request.
enum class approval_outcome : std::uint8_t {
  accepted,
  not_found,
  mutated,      ///< the hash is another one
  expired,      ///< too late
  withdrawn,    ///< the run is over
  decided,      ///< somebody decided before
  used,         ///< it was used before
  not_approved, ///< to be used before anybody approved it
  voided,       ///< a use found something else than was approved
  refused       ///< who asks may not decide, or what was said answers nothing
};

/// One attempt to do something with a request, whatever came of it. Never changed.
struct approval_line {
  std::int64_t number = 0; ///< from 1
  utc_time at{};
  std::string what; ///< ask, adopt, approve, reject, use, hold, withdraw, expire
  approval_outcome outcome = approval_outcome::accepted;
  std::string by;
  std::string detail;

  bool operator==(const approval_line&) const = default;
};

/// Asks a person, for a run that holds its dispatch under `fence`. Idempotent per approval_id. The
/// same matter of the same dispatch is not asked twice: a request that is held is adopted by this
/// run, and one that was rejected is answered with. The reply's `state` says what there is to do:
/// wait, use it, or take the no. Errors: `stale_fence` when the run is not the dispatch's present
/// one; `limit_exceeded` when too many requests are open.
struct ask_approval {
  struct reply {
    approval row;
    bool fresh = false; ///< made now: somebody is to be told
  };
  std::string approval_id;
  approval_matter matter;
  std::string reason;
  std::string node_id;
  std::int64_t fence = 0;
  milliseconds lives{0};
};

/// The answer to an attempt to decide or use; without a row when there is none with this id.
struct approval_change {
  approval_outcome outcome = approval_outcome::not_found;
  std::optional<approval> row;
};

/// A person's word. `hash` is what the person saw. Taken once: a repeat with the same decision_id
/// is accepted again, any other attempt is refused and recorded.
struct decide_approval {
  using reply = approval_change;
  std::string approval_id; ///< whole
  std::string hash;
  bool approve = false;
  std::string by;
  std::string note;
  std::string decision_id;
  /// Why it is not taken, whatever is stored; empty: it may be. Recorded, and changes nothing else.
  std::string refused{};
};

/// Lets the action through, once, for the run that holds the dispatch. `hash` is made anew from
/// what is about to be done. Another hash voids the approval. A repeat with the same use_id is
/// accepted again, any other is refused and recorded.
struct use_approval {
  using reply = approval_change;
  std::string approval_id;
  std::string hash;
  std::int64_t fence = 0;
  std::string use_id;
};

/// The run is over, or waits no longer: its open requests are withdrawn or, with `hold`, kept for
/// the dispatch's next run until they expire.
struct withdraw_approvals {
  struct reply {
    std::vector<std::string> ended; ///< approval_ids
  };
  std::string dispatch_id;
  std::int64_t fence = 0;
  std::string approval_id; ///< empty: all of the run
  bool hold = false;
  std::string why;
};

/// Ends what has expired and what belongs to runs that are over, at most `limit` of them, and
/// counts the rest.
struct sweep_approvals {
  struct reply {
    std::uint64_t ended = 0;
    std::uint64_t pending = 0;  ///< left
    std::uint64_t approved = 0; ///< left, not used yet
  };
  std::size_t limit = 500;
};

/// One with its trail; `approval_id` whole or a beginning of at least 6 characters that only one
/// has.
struct find_approval {
  struct story {
    approval row;
    std::vector<approval_line> trail;
  };
  using reply = std::optional<story>;
  std::string approval_id;
};

/// Newest first. Expired requests and those of runs that are over show as such, swept or not.
/// `shown` is left out.
struct list_approvals {
  using reply = std::vector<approval>;
  std::string kernel_id;        ///< empty: all
  bool open = false;            ///< only pending and approved ones
  std::vector<std::string> ids; ///< only these; empty: all
  std::size_t limit = 100;
};

} // namespace boyd::store
