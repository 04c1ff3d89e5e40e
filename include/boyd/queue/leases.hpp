#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boyd::queue {

/// The leases that one holder believes in, on its own steady clock. A lease ends by the store's
/// clock; the holder counts it from the *start* of the call that granted it and stops `margin`
/// earlier, so that its belief ends before the store's grant does (FAULTS.md). Pure; not
/// thread-safe.
class held_leases {
 public:
  /// `renew_every`: age of a grant at which it is due for renewal. `margin`: how much before its
  /// end a lease counts as lost.
  explicit held_leases(milliseconds renew_every = limits::lease_renewal,
                       milliseconds margin = milliseconds{2000});

  /// A claim that was begun at `call_started` granted `lease`.
  void granted(const std::string& dispatch_id, std::int64_t fence, steady_time call_started,
               milliseconds lease);

  /// A renewal begun at `call_started` was answered: `asked` is what it named, `lost` what the
  /// store refused. A grant never shortens: a late answer to an older call changes nothing.
  void renewed(const std::vector<store::renew_leases::held>& asked,
               const std::vector<std::string>& lost, steady_time call_started, milliseconds lease);

  /// The attempt is over (settled or spooled).
  void released(const std::string& dispatch_id, std::int64_t fence);

  /// Leases whose grant is `renew_every` old: what the next renew_leases names. In id order.
  std::vector<store::renew_leases::held> due(steady_time now) const;

  /// Takes out the leases that are lost: refused by the store, or run out by the own clock.
  std::vector<store::renew_leases::held> take_lost(steady_time now);

  /// When `take_lost` next has something, if nothing is renewed.
  std::optional<steady_time> next_loss() const;

  std::size_t size() const noexcept { return held_.size(); }

 private:
  struct grant {
    std::int64_t fence = 0;
    steady_time from{};
    steady_time until{};
    bool refused = false;
  };

  milliseconds renew_every_;
  milliseconds margin_;
  std::map<std::string, grant> held_;
};

} // namespace boyd::queue
