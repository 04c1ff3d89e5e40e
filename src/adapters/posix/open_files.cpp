#include "open_files.hpp"

#include <sys/resource.h>

namespace boyd::adapters {

open_files_limit raise_open_files() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return {};
  open_files_limit found{limit.rlim_cur, limit.rlim_cur};
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0)
    found.now = limit.rlim_cur;
  return found;
}

} // namespace boyd::adapters
