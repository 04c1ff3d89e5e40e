#include "resident_code.hpp"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/mman.h>

namespace boyd::adapters {

namespace {

/// A line of /proc/self/maps (proc_pid_maps(5)): `begin-end permissions offset device inode path`.
struct mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string permissions;
  std::string path;
};

bool read(std::istream& lines, mapping& m) {
  std::string line;
  if (!std::getline(lines, line))
    return false;
  std::istringstream in(line);
  char dash = 0;
  std::string skipped;
  m = {};
  in >> std::hex >> m.begin >> dash >> m.end >> m.permissions;
  in >> skipped >> skipped >> skipped >> m.path;
  return true;
}

} // namespace

std::size_t release_resident_code() {
  std::ifstream lines("/proc/self/maps");
  std::size_t looked_at = 0;
  for (mapping m; read(lines, m);) {
    // Nothing has written to these pages: they are the files' own.
    if (m.permissions != "r-xp" || !m.path.starts_with('/'))
      continue;
    const auto size = m.end - m.begin;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the system names addresses as numbers
    if (::madvise(reinterpret_cast<void*>(m.begin), size, MADV_DONTNEED) == 0)
      looked_at += size;
  }
  return looked_at;
}

} // namespace boyd::adapters
