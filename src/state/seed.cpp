#include "boyd/state/seed.hpp"

namespace boyd::state {

std::string seed_state(std::string_view kernel_name) {
  return "# Kernel State\n## identity\n" + std::string(kernel_name) +
         " autonomous kernel\n## recent_actions\n(none yet)\n";
}

} // namespace boyd::state
