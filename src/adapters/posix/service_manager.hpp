#pragma once

#include "../unique_fd.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// Tells systemd how the service is: the datagrams of sd_notify(3), written by hand, because
/// libsystemd would bring its own libraries into every process for ten lines. Without a manager
/// (no NOTIFY_SOCKET) everything does nothing. Not copyable; one thread.
class service_manager {
 public:
  /// From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which are taken out of the environment: no
  /// child is to speak for the node. Call it before other threads exist.
  /// Errors: `invalid_argument`: an address that is none; `io_error`: no socket.
  static result<service_manager> from_environment();

  /// The manager expects a word at least this often; nothing: it does not.
  std::optional<milliseconds> watchdog() const noexcept { return watchdog_; }

  /// One datagram, e.g. "READY=1\nSTATUS=runs". Never blocks; errors: `io_error`. A message that is
  /// lost is told again by the next one, but READY: its error must be logged.
  result<void> notify(std::string_view state) const;

  bool present() const noexcept { return !address_.empty(); }

 private:
  unique_fd socket_;
  std::string address_; ///< a path, or "@name" of an abstract one
  std::optional<milliseconds> watchdog_;
};

} // namespace boyd::adapters
