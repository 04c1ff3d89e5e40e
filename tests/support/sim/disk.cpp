#include "support/sim/disk.hpp"

namespace boyd::sim {

std::string_view name_of(disk_op op) noexcept {
  switch (op) {
  case disk_op::read: return "read";
  case disk_op::stat: return "stat";
  case disk_op::open: return "open";
  case disk_op::write: return "write";
  case disk_op::sync: return "sync";
  case disk_op::truncate: return "truncate";
  case disk_op::size: return "size";
  case disk_op::rename: return "rename";
  case disk_op::unlink: return "unlink";
  case disk_op::sync_directory: return "sync_directory";
  case disk_op::make_directories: return "make_directories";
  case disk_op::list: return "list";
  }
  return "unknown";
}

} // namespace boyd::sim
