#pragma once

#include "boyd/core/time.hpp"

namespace boyd {

/// The only source of time. Threads: any.
class clock_port {
 public:
  virtual ~clock_port() = default;

  /// The time of day; may jump (NTP, an operator, suspend).
  virtual utc_time now() const = 0;

  /// Never jumps; for durations.
  virtual steady_time steady() const = 0;
};

} // namespace boyd
