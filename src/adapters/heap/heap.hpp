#pragma once

#include <cstdint>

namespace boyd::adapters {

/// The program's heap: jemalloc's, where no sanitizer brings its own. A program that links this
/// room has it for all its allocations. Threads: any.

/// Gives free memory back to the system.
void release_heap();

/// Bytes that are allocated and not freed.
std::uint64_t heap_in_use();

} // namespace boyd::adapters
