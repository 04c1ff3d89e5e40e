#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"
#include "home.hpp"

namespace boyd::app {

/// `refused` when the embedded database is missing although the STATE.md of a kernel tells of
/// finished cycles, which is written only after the database was made: an empty one in its place
/// would hide the loss; `invalid_configuration` when the home has worked with another store.
/// Nothing is written. What cannot be read is no proof of a loss.
result<void> check_database_is_there(const place& where, const config::configuration& settings,
                                     file_system& files);

} // namespace boyd::app
