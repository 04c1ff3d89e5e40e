#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/tools/call.hpp"

#include <functional>
#include <string>

namespace boyd::tools {

/// The lines of the files below `root` that hold what `call` looks for, one "path:line: text" each,
/// and what was passed over. `allowed`: whether the policy lets a file be read.
result<std::string> search_files(confined_files& files, const std::string& root,
                                 const search_text_call& call,
                                 const std::function<bool(const std::string& where)>& allowed);

} // namespace boyd::tools
