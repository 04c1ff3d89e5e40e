#pragma once

#include "boyd/core/time.hpp"

#include <chrono>

namespace boyd::adapters::postgres {

class session;

/// How long statements wait for locks. A node has one session: who waits in it for somebody else's
/// lock holds all others up. When one wait was in vain, those that follow are short, until there
/// has been none for a while. Not thread-safe.
class lock_patience {
 public:
  /// `longest` is what a new session has.
  explicit lock_patience(milliseconds longest) : longest_(longest), set_(longest) {}

  /// Something came to no end in its time.
  void waited_in_vain();
  /// Between transactions: `db` gets the limit that holds now. Throws `failure`.
  void hand_to(session& db);

 private:
  using clock = std::chrono::steady_clock;

  milliseconds longest_;
  milliseconds set_;
  clock::time_point short_until_{};
};

} // namespace boyd::adapters::postgres
