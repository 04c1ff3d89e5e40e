#pragma once

#include <stdexcept>
#include <string>

namespace boyd {

/// Something holds that never may. A bug: the actor whose core throws it ends, is restarted with
/// fresh state, and `boyd status` shows the text.
class broken_invariant : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// What a core states about its own state, checked in every build: a counter that goes below zero
/// is reported, never corrected in silence. `what`: core and condition, for example "permits:
/// in use >= 0".
inline void invariant(bool holds, const char* what) {
  if (!holds)
    throw broken_invariant("broken invariant: " + std::string(what) +
                           "; this is a bug in Boyd, please report it");
}

} // namespace boyd
