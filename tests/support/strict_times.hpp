#pragma once

#include <cstdlib>
#include <string_view>

namespace boyd::test {

/// BOYD_STRICT_TIMES=1: times are held against what docs/reliability.md promises. That takes a
/// machine that does nothing else; the ordinary suite only finds out what hangs.
inline bool strict_times() {
  const char* wish = std::getenv("BOYD_STRICT_TIMES");
  return wish != nullptr && std::string_view(wish) == "1";
}

/// How long something may take.
template <class Time>
Time at_most(Time promised, Time ordinary) {
  return strict_times() ? promised : ordinary;
}

} // namespace boyd::test
