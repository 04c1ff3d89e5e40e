#pragma once

#include "boyd/ports/store_archive.hpp"
#include "store.hpp"

#include <memory>

namespace boyd::adapters {

/// The content of the database, which a store has opened, and thus migrated, before.
std::unique_ptr<store_archive> make_postgres_archive(postgres_options options);

} // namespace boyd::adapters
