#pragma once

#include "boyd/ports/confined_files.hpp"

#include <memory>
#include <string>

namespace boyd::adapters {

struct confined_options {
  /// The node's home, absolute: what lies in it is guarded wherever a workspace begins
  /// (`why_home_forbids`). Empty: nothing is.
  std::string home;
  /// Also where the kernel has it: for tests.
  bool without_openat2 = false;
};

/// The machine's files, confined. Needs /proc. Stateless; threads: any.
std::shared_ptr<confined_files> make_confined_files(confined_options options);

} // namespace boyd::adapters
