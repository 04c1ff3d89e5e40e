#pragma once

#include "boyd/ports/store_archive.hpp"

#include <memory>
#include <string>

namespace boyd::adapters {

/// The content of the database at `path`, which a store has opened, and thus migrated, before.
std::unique_ptr<store_archive> make_sqlite_archive(std::string path);

} // namespace boyd::adapters
