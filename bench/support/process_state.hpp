#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace boyd::bench {

/// What this process holds at this moment, as the kernel and the allocator tell.
struct process_state {
  std::uint64_t heap_bytes = 0; ///< allocated and not freed
  std::uint64_t resident_bytes = 0;
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t children = 0;
};

process_state observe_process();

/// The size of a file; 0 when there is none.
std::uint64_t size_of_file(const std::string& path);

} // namespace boyd::bench
