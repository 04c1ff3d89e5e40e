#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <functional>
#include <string>

namespace boyd {

/// Calls an address of the web and is content with any good answer: for heartbeats. Threads: any.
class web_caller {
 public:
  virtual ~web_caller() = default;

  /// Sends GET to `url` (http or https; nothing else) and calls `done` once: with success for a
  /// status of 2xx, else with the error, which names the host but not the path. Returns at once;
  /// `done` runs on a thread of the caller's, or on this one when the call is refused, and must not
  /// block. Nothing is repeated and no redirection is followed. Connecting, sending and the
  /// answer take `limit` in all, after a name look-up with the system's own limits; of the answer
  /// only the head is read.
  /// Errors: `invalid_argument`; `overloaded` when too many calls are under way; `timed_out`;
  /// `io_error`; `refused` for another status, with its number, or a certificate that does not
  /// hold.
  virtual void get(const std::string& url, milliseconds limit,
                   std::function<void(const result<void>&)> done) = 0;
};

} // namespace boyd
