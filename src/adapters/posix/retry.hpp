#pragma once

#include <cerrno>

namespace boyd::adapters {

/// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  decltype(call()) returned;
  do {
    returned = call();
  } while (returned < 0 && errno == EINTR);
  return returned;
}

} // namespace boyd::adapters
