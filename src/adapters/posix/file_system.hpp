#pragma once

#include "boyd/ports/file_system.hpp"

#include <memory>

namespace boyd::adapters {

/// The machine's file system. Stateless; threads: any.
std::shared_ptr<file_system> make_posix_file_system();

} // namespace boyd::adapters
