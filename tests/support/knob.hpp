#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace boyd::test {

/// How much a test does: a whole number above 0 from the environment, `standard` when the variable
/// is not set. Throws on anything else, for a size that cannot be read would be a run that shows
/// nothing.
inline std::int64_t knob(const char* name, std::int64_t standard) {
  const char* wish = std::getenv(name);
  if (wish == nullptr || *wish == '\0')
    return standard;
  const std::string_view text(wish);
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value <= 0)
    throw std::invalid_argument(std::string(name) + "=" + wish +
                                ": give a whole number above 0, or unset it");
  return value;
}

/// Every how many-th point a sweep tries, which otherwise tries all: a sanitizer's run takes fewer.
inline std::uint64_t sweep_stride() {
  return static_cast<std::uint64_t>(knob("BOYD_SWEEP_STRIDE", 1));
}

} // namespace boyd::test
