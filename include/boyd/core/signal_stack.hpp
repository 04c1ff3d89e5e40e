#pragma once

namespace boyd {

/// Gives the calling thread a second stack for handlers with SA_ONSTACK, until its end: a thread
/// whose own stack has overflowed can run none otherwise. One that has such a stack already (a
/// sanitizer's) keeps it. Without memory nothing happens. The first thing that a thread of ours
/// does.
void give_signal_stack();

} // namespace boyd
