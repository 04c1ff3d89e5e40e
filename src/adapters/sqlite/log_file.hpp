#pragma once

#include "boyd/core/result.hpp"

#include <string>

namespace boyd::adapters::sqlite {

/// Writes the file at `path` anew, in place and byte for byte, and makes it durable; a missing or
/// empty one is left alone. Whoever calls it lets nobody else write there meanwhile. Errors:
/// `io_error`, `no_space`; then it says what it said before.
///
/// After a failed fsync Linux takes the pages for clean: they are read as they were written, no
/// later fsync brings them to the disk, and after a power cut the file has a hole there (Rebello et
/// al., Can Applications Recover from fsync Failures?, USENIX ATC 2020). A write-ahead log that is
/// appended to behind such a hole ends before it.
result<void> write_anew(const std::string& path);

} // namespace boyd::adapters::sqlite
