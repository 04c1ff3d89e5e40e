#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/config/cron.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/time_zones.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace boyd::plan {

/// A schedule that was read and tied to its time zone. A value; immutable. Threads: any.
///
/// A slot is the moment a schedule names, without jitter: the same on every node, and the identity
/// of the ledger's row. Rules for the change of the clocks (docs/planning.md):
/// - With a fixed hour and minute, a local time that is skipped fires once, at the moment of the
///   jump (where it falls together with what is due then anyway), a repeated one the first time.
/// - With a star as minute or hour (config::cron_fields::is_pace) every matching minute that the
///   clock shows fires, also when it comes again. Where a change of the clock would make the pause
///   longer than the schedule has it, the moment of the change fires as well.
/// "@every" counts from 1970-01-01T00:00:00Z, so that all processes agree on its slots; "at" has
/// one slot, by the rule for fixed times.
class schedule_rule {
 public:
  /// Reads the expression and finds the zone. Errors: `invalid_argument` naming the field and what
  /// it expects; `not_found` naming the nearest zone.
  static result<schedule_rule> make(const config::schedule& settings, const time_zones& zones);

  /// The first slot strictly after `t`; nothing when there is none within 50 years.
  std::optional<utc_time> next_after(utc_time t) const;

  /// The last slot at or before `t`; nothing when there is none within 50 years.
  std::optional<utc_time> latest_at_or_before(utc_time t) const;

  /// When `slot` is to start: `slot` plus its jitter, which is a function of (owner, slot) alone,
  /// so that two processes agree. Uniform in [0, jitter), never past the next slot: the order of
  /// slots stays. `owner`: the kernel_id, or "kernel_id/agent_id" for an agent's own schedule.
  utc_time due_at(std::string_view owner, utc_time slot) const;

  /// What it was made from: expression, zone, overlap, misfire, grace.
  const config::schedule& settings() const noexcept { return settings_; }

 private:
  schedule_rule(config::schedule settings, config::cron_fields fields,
                std::shared_ptr<const time_zone> zone);

  /// How a civil time becomes a moment. `once`: see above, of fixed times. `earlier` and `later`:
  /// of a repeated time the one or the other, of a skipped one none. `civil`: as if local were UTC.
  enum class reading : std::uint8_t { once, earlier, later, civil };

  /// The only slot of "at".
  std::optional<utc_time> only_slot() const;
  bool day_matches(std::chrono::local_days day) const;
  time_zone::mapping moment(reading how, std::chrono::local_days day, std::size_t hour,
                            std::size_t minute) const;
  bool fires(reading how, std::chrono::local_days day, std::size_t hour, std::size_t minute) const;
  std::chrono::local_days day_of(reading how, utc_time t) const;
  std::optional<utc_time> first_in_day(reading how, std::chrono::local_days day,
                                       utc_time after) const;
  std::optional<utc_time> last_in_day(reading how, std::chrono::local_days day,
                                      utc_time until) const;
  std::optional<utc_time> search_on(reading how, utc_time after) const;
  std::optional<utc_time> search_back(reading how, utc_time until) const;
  std::optional<utc_time> shown_after(utc_time t) const;
  std::optional<utc_time> shown_until(utc_time t) const;
  std::optional<utc_time> made_up(std::optional<utc_time> last, std::optional<utc_time> next) const;

  config::schedule settings_;
  config::cron_fields fields_;
  std::shared_ptr<const time_zone> zone_;
};

} // namespace boyd::plan
