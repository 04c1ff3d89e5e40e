#pragma once

#include <cstdint>

namespace boyd {

/// The only source of randomness. Threads: any.
class entropy {
 public:
  virtual ~entropy() = default;

  /// 64 uniformly distributed bits.
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
};

} // namespace boyd
