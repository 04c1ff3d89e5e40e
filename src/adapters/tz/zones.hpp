#pragma once

#include "boyd/ports/time_zones.hpp"

#include <memory>
#include <string>

namespace boyd::adapters {

/// Time zones from the system's database (tzdata), read on first use and never downloaded. "UTC"
/// works without the database. Errors of `find`: `not_found` for an unknown name (`next` names the
/// nearest), `io_error` when the database is missing. Threads: any.
std::shared_ptr<const time_zones> make_time_zones();

/// The name of the machine's own zone in that database, from TZ or /etc/localtime: "Europe/Berlin".
/// "UTC" for what is UTC by another name, and when no zone is known. Threads: any.
std::string local_zone_name();

} // namespace boyd::adapters
