#pragma once

#include "boyd/ports/knowledge_index.hpp"

#include <memory>
#include <string>

namespace boyd::adapters {

/// The index of memory in a SQLite database of its own at `path`, which is made with its
/// directory's rights; the directory exists. What a crash can take from it comes back from the
/// files, so it is synced at checkpoints alone. Keep one object per file alive at a time.
std::unique_ptr<knowledge_index> make_sqlite_knowledge_index(std::string path);

} // namespace boyd::adapters
