#pragma once

#include "boyd/ports/time_zones.hpp"

#include <memory>

namespace boyd::adapters {

/// Time zones from the system's database (tzdata), read on first use and never downloaded. "UTC"
/// works without the database. Errors of `find`: `not_found` for an unknown name (`next` names the
/// nearest), `io_error` when the database is missing. Threads: any.
std::shared_ptr<const time_zones> make_time_zones();

} // namespace boyd::adapters
