#pragma once

#include <cstddef>

namespace boyd::adapters {

/// Gives back the memory of machine code that has run so far, of this program and its libraries:
/// what runs again is mapped again from the page cache, at less than a millisecond for all of it.
/// After a start most of it never does. Returns the bytes that it looked at, 0 where the system
/// does not tell what is mapped. Any thread; breakpoints that a debugger has set by then are lost.
std::size_t release_resident_code();

} // namespace boyd::adapters
