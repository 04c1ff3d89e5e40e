#pragma once

#include "crash/control_block.hpp"

#include <sys/types.h>

/// What an fsync that fails does to a file: Linux takes its pages for clean then, so that they are
/// read as they were written, and no later fsync brings them to the disk. A file is known by its
/// inode; one at a time has lost bytes. Threads: any.
namespace boyd::crash {

/// `count` bytes from `at` on were written.
void note_written(control_block& block, int fd, off_t at, long count);
/// The file ends at `length` now; 0: it may be a new one under an old number.
void note_cut(control_block& block, int fd, off_t length);
/// What was written is on the disk.
void note_synced(int fd);
/// The fsync has failed: what was written since the one before it is lost until it is written
/// again, from its first byte on, or the file is cut short of it.
void lose_unsynced(control_block& block, int fd);
/// An fsync of the file says yes and does nothing.
bool has_lost(const control_block& block, int fd);

} // namespace boyd::crash
