#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace boyd {

using local_seconds = std::chrono::local_time<std::chrono::seconds>;

/// A time zone's rules. Immutable. Threads: any.
class time_zone {
 public:
  virtual ~time_zone() = default;

  /// The civil time at `t`.
  virtual local_seconds to_local(std::chrono::sys_seconds t) const = 0;

  /// What a civil time means in UTC.
  struct mapping {
    enum kind_t { unique, skipped, repeated } kind = unique;
    /// unique: the moment; repeated: the first of the two; skipped: the moment of the jump.
    std::chrono::sys_seconds first{};
    /// repeated: the second of the two; otherwise equal to `first`.
    std::chrono::sys_seconds second{};
  };
  virtual mapping to_utc(local_seconds local) const = 0;

  /// What people call the zone at `t`, such as "CET"; empty when that is not known.
  virtual std::string abbreviation(std::chrono::sys_seconds /*t*/) const { return {}; }
};

class time_zones {
 public:
  virtual ~time_zones() = default;

  /// By IANA name ("Europe/Berlin", "UTC"); `not_found` names the nearest known zone.
  virtual result<std::shared_ptr<const time_zone>> find(const std::string& name) const = 0;

  /// The machine's own zone, in which its programs print times; UTC when it is not known, null when
  /// that is not known either.
  virtual std::shared_ptr<const time_zone> local() const { return find("UTC").value_or(nullptr); }
};

} // namespace boyd
