#include "crash/shim/lost_pages.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <sys/stat.h>

namespace boyd::crash {

namespace {

/// What has been written to a file since its latest fsync, from the first byte to the last.
struct dirty_range {
  std::uint64_t inode; ///< 0: a free place
  std::uint64_t from;
  std::uint64_t to;
};

constexpr std::size_t most_files = 64;

std::mutex mutex;
std::array<dirty_range, most_files> dirty;

/// 0: not a regular file. Directories have nothing that could be written to again.
std::uint64_t inode_of(int fd) {
  struct ::stat info {};
  const int kept = errno;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  errno = kept;
  return regular ? info.st_ino : 0;
}

/// The file's range, or a free place; null when all are in use.
dirty_range* place_of(std::uint64_t inode) {
  const auto find = [](std::uint64_t what) {
    const auto it = std::ranges::find(dirty, what, &dirty_range::inode);
    return it == dirty.end() ? nullptr : &*it;
  };
  auto* known = find(inode);
  return known != nullptr ? known : find(0);
}

void look_whether_all_is_back(control_block& block) {
  if (block.unsynced_from >= block.unsynced_to)
    block.unsynced_inode = 0;
}

} // namespace

void note_written(control_block& block, int fd, off_t at, long count) {
  const auto inode = inode_of(fd);
  if (inode == 0 || count <= 0 || at < 0)
    return;
  const auto from = static_cast<std::uint64_t>(at);
  const auto to = from + static_cast<std::uint64_t>(count);
  const std::lock_guard lock(mutex);
  if (auto* d = place_of(inode))
    *d = d->inode == inode ? dirty_range{inode, std::min(d->from, from), std::max(d->to, to)}
                           : dirty_range{inode, from, to};
  if (block.unsynced_inode != inode || from > block.unsynced_from || to <= block.unsynced_from)
    return;
  block.unsynced_from = to;
  look_whether_all_is_back(block);
}

void note_cut(control_block& block, int fd, off_t length) {
  const auto inode = inode_of(fd);
  if (inode == 0)
    return;
  const auto end = static_cast<std::uint64_t>(length);
  const std::lock_guard lock(mutex);
  if (auto* d = place_of(inode); d != nullptr && d->inode == inode) {
    d->to = std::min(d->to, end);
    if (d->from >= d->to)
      *d = {};
  }
  if (block.unsynced_inode != inode)
    return;
  block.unsynced_to = std::min(block.unsynced_to.load(), end);
  look_whether_all_is_back(block);
}

void note_synced(int fd) {
  const auto inode = inode_of(fd);
  const std::lock_guard lock(mutex);
  if (auto* d = place_of(inode); d != nullptr && d->inode == inode)
    *d = {};
}

void lose_unsynced(control_block& block, int fd) {
  const auto inode = inode_of(fd);
  const std::lock_guard lock(mutex);
  auto* d = place_of(inode);
  if (inode == 0 || d == nullptr || d->inode != inode)
    return;
  block.unsynced_from = d->from;
  block.unsynced_to = d->to;
  block.unsynced_inode = inode;
  *d = {};
}

bool has_lost(const control_block& block, int fd) {
  return block.unsynced_inode != 0 && block.unsynced_inode == inode_of(fd);
}

} // namespace boyd::crash
