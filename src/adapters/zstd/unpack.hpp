#pragma once

#include "boyd/ports/unpack.hpp"

namespace boyd::adapters {

/// ports::unpack, with libzstd.
unpack_step unpack_zstd();

} // namespace boyd::adapters
