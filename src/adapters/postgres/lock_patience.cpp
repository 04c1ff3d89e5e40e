#include "lock_patience.hpp"

#include "session.hpp"

#include <algorithm>
#include <string>

namespace boyd::adapters::postgres {

namespace {

/// Other nodes hold locks for some milliseconds, a large batch for some hundred.
constexpr milliseconds short_wait = 250ms;
/// Longer than what was in vain waits for its next try.
constexpr milliseconds wait_is_short_for = 1min;

} // namespace

void lock_patience::waited_in_vain() {
  short_until_ = clock::now() + wait_is_short_for;
}

void lock_patience::hand_to(session& db) {
  const auto wanted =
      clock::now() < short_until_ ? std::min<milliseconds>(short_wait, longest_) : longest_;
  if (wanted == set_)
    return;
  db.begin_single();
  db.script("SET lock_timeout=" + std::to_string(wanted.count()));
  db.commit();
  set_ = wanted;
}

} // namespace boyd::adapters::postgres
