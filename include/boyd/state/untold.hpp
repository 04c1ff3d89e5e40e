#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

/// What went wrong after a cycle's row was written (its edges, STATE.md, its commits): that row
/// cannot tell of it, so the store keeps it until the next row does.
struct untold {
  std::string cycle_id;              ///< the cycle whose end left it; empty: nothing is untold
  std::vector<std::string> problems; ///< in the order in which they came
};

/// The scope of the store's facts that keep it, by node_id.
std::string untold_scope(std::string_view kernel_id);

/// As the text of a fact. Problems need not be UTF-8: what is not is replaced.
std::string render_untold(const untold& u);

/// The text of a fact; a text that is none reads as nothing.
untold parse_untold(std::string_view text);

} // namespace boyd::state
