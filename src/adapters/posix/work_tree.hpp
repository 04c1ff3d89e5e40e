#pragma once

#include "boyd/ports/work_tree.hpp"

#include <memory>

namespace boyd::adapters {

/// The machine's files (renameat2 with RENAME_EXCHANGE and RENAME_NOREPLACE; directories are opened
/// part by part with O_NOFOLLOW). Stateless; threads: any.
std::shared_ptr<work_tree> make_work_tree();

} // namespace boyd::adapters
