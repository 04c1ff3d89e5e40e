#pragma once

#include "boyd/queue/migration.hpp"

#include <vector>

namespace boyd::adapters::sqlite {

/// All steps, versions 1, 2, … without gaps: the files of the folder migrations.
const std::vector<queue::migration>& migrations();

} // namespace boyd::adapters::sqlite
