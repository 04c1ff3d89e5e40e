#pragma once

#include "boyd/core/errc.hpp"

/// docs/operations.md.
namespace boyd::app::exit_code {

inline constexpr int ok = 0;
inline constexpr int failure = 1;
inline constexpr int usage = 2;
inline constexpr int partial = 3;
inline constexpr int configuration = 4;
inline constexpr int busy = 5;

// Of `boyd node` alone: the service manager starts it again.
inline constexpr int gave_up = 6; ///< a vital part failed too often, or its home was replaced
inline constexpr int overdue = 7; ///< the stop took longer than its hard deadline, or was stuck
inline constexpr int stuck = 8;   ///< the watchdog: a part lived, but did not answer

/// What a command that failed with `code` ends with.
constexpr int of(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
    return usage;
  case errc::invalid_configuration:
    return configuration;
  case errc::locked:
  case errc::conflict:
  case errc::overloaded:
    return busy;
  default:
    return failure;
  }
}

} // namespace boyd::app::exit_code
