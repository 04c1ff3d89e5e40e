#pragma once

#include "boyd/config/load.hpp"
#include "boyd/core/result.hpp"

#include <string>
#include <string_view>

namespace boyd::app {

/// `text` of the configuration file `from`, changed so that it means the same at `to`: scalars that
/// are paths relative to the file's folder (cwd, file, inputs, store_password_file) become
/// absolute, also in the default of a leading ${VAR:-path}; the schema comment of editors names the
/// copy beside it; all else, comments included, stays.
std::string moved_configuration(const std::string& from, std::string_view text);

/// Fails (`refused`) when the two files do not mean the same.
result<void> same_meaning(const config::configuration& a, config::configuration b);

} // namespace boyd::app
