#pragma once

#include "boyd/core/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace boyd::sim {

/// A file of the simulated disk, by whatever names.
struct inode {
  std::uint64_t number = 0;
  bool symlink = false;
  std::string content; ///< what a read sees
  std::string durable; ///< what is on the platter
  /// Bytes [dirty_begin, dirty_end) of `content` are to be written by the next sync. A failed sync
  /// empties the range without writing: the bytes stay readable and are lost (as Linux does it).
  std::size_t dirty_begin = 0;
  std::size_t dirty_end = 0;
  bool size_dirty = false;
  utc_time modified{};

  bool dirty() const { return dirty_begin < dirty_end || size_dirty; }

  void mark_dirty(std::size_t begin, std::size_t end) {
    const bool clean = dirty_begin >= dirty_end;
    dirty_begin = clean ? begin : std::min(dirty_begin, begin);
    dirty_end = clean ? end : std::max(dirty_end, end);
  }

  void clip_dirty() {
    dirty_end = std::min(dirty_end, content.size());
    dirty_begin = std::min(dirty_begin, dirty_end);
  }

  void forget_dirty() {
    dirty_begin = dirty_end = 0;
    size_dirty = false;
  }

  /// The platter after a complete write-back.
  std::string written_back() const {
    std::string all = durable;
    all.resize(content.size(), '\0');
    for (std::size_t i = dirty_begin; i < dirty_end; ++i) {
      all[i] = content[i];
    }
    return all;
  }
};

using inode_ptr = std::shared_ptr<inode>;

} // namespace boyd::sim
