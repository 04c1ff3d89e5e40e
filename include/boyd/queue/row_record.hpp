#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/record/execution.hpp"

namespace boyd::queue {

/// What the database knows of an execution that has no record of its own: a run of a flood
/// (actors/executor/record.cpp), or one of before records were kept. It knows what the run was told
/// and how its attempts ended, not what it read. Pure.
record::execution execution_of(const dispatch& row);

} // namespace boyd::queue
