#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace boyd::test {

/// BOYD_STRICT_TIMES=1: times are held against what docs/reliability.md promises. That takes a
/// machine that does nothing else; the ordinary suite only finds out what hangs.
inline bool strict_times() {
  const char* wish = std::getenv("BOYD_STRICT_TIMES");
  const std::string_view text = wish == nullptr ? "" : wish;
  if (text != "1" && text != "0" && !text.empty())
    throw std::invalid_argument("BOYD_STRICT_TIMES: give 1 or 0, or unset it");
  return text == "1";
}

/// How long something may take.
template <class Time>
Time at_most(Time promised, Time ordinary) {
  return strict_times() ? promised : ordinary;
}

} // namespace boyd::test
