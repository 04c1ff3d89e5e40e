#pragma once

#include "boyd/core/dispatch.hpp"

#include <string>

namespace boyd::queue {

/// The end of a run as the node's log tells it, one line: what became of it, how long its program
/// ran where that is known, and its summary or the reason. "failed (deterministic) after 1.2 s:
/// exit code 1: no answer", "failed, next attempt in 4.0 s: …". Pure.
std::string end_in_words(const settlement& end);

} // namespace boyd::queue
