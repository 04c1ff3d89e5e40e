#pragma once

extern "C" {
// Each sanitizer's runtime has its own; without it the address is null.
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

namespace boyd::test {

/// The product's code runs under AddressSanitizer or ThreadSanitizer, whose memory and signals are
/// not those of the product. Asked at run time: test code is compiled without them.
inline bool sanitized() noexcept {
  return &__asan_init != nullptr || &__tsan_init != nullptr;
}

} // namespace boyd::test
