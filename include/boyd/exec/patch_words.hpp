#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// What a patch says of the run that made it.
struct patch_words {
  std::vector<std::string> paths; ///< of files that it changes, makes, removes or renames
  std::string added;              ///< the lines that it adds
};

/// Reads a unified diff as git writes it. Pure; what is no diff has neither paths nor lines.
patch_words read_patch(std::string_view patch);

} // namespace boyd::exec
