#pragma once

#include "bench/support/scratch.hpp"
#include "boyd/core/result.hpp"

#include <memory>
#include <string>

namespace boyd::bench {

/// A fresh home and store for one phase; both are gone with it.
struct place {
  std::unique_ptr<scratch_directory> home;
  std::unique_ptr<scratch_database> database; ///< null with SQLite
  std::string store;                          ///< "sqlite" or the URI of the fresh database
};

/// `directory`: where the home is made; `store`: "sqlite", or the server's postgres:// URI.
result<place> make_place(const std::string& directory, const std::string& store);

} // namespace boyd::bench
