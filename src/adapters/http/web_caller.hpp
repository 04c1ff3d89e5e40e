#pragma once

#include "boyd/ports/web_caller.hpp"

#include <memory>

namespace boyd::adapters {

/// HTTP/1.1 over TCP or TLS, each call on a short-lived thread of its own, at most four at a time.
/// A certificate must hold for the host by the system's authorities. Its end gives calls that are
/// under way two seconds, then cancels them; a name look-up, which nobody can cancel, is left
/// behind.
std::shared_ptr<web_caller> make_web_caller();

} // namespace boyd::adapters
