#pragma once

namespace boyd::adapters {

/// Gives the calling thread a second stack for handlers with SA_ONSTACK, until its end: a thread
/// whose own stack has overflowed can run none otherwise. One that has such a stack already (a
/// sanitizer's) keeps it. Without memory nothing happens.
void give_signal_stack();

} // namespace boyd::adapters
