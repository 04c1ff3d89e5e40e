#include "heap.hpp"

#ifdef BOYD_JEMALLOC
#include <jemalloc/jemalloc.h>
#include <string>

/// Read by jemalloc as the program starts (jemalloc(3), TUNING; MALLOC_CONF in the environment
/// comes behind it). Few arenas: an idle node is small. What was freed goes back within a second.
const char* malloc_conf = "narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0";
#else
#include <malloc.h>
#endif

namespace boyd::adapters {

#ifdef BOYD_JEMALLOC

void release_heap() {
  static_cast<void>(::mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0));
  static const auto all = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  static_cast<void>(::mallctl(all.c_str(), nullptr, nullptr, nullptr, 0));
}

std::uint64_t heap_in_use() {
  // Its figures are those of the latest epoch; to write one begins another.
  std::uint64_t epoch = 1;
  static_cast<void>(::mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch));
  std::size_t allocated = 0;
  auto size = sizeof allocated;
  static_cast<void>(::mallctl("stats.allocated", &allocated, &size, nullptr, 0));
  return allocated;
}

#else

void release_heap() {
  ::malloc_trim(0);
}

std::uint64_t heap_in_use() {
  const auto heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

#endif

} // namespace boyd::adapters
