#pragma once

#include "arguments.hpp"

#include <string>

/// Commands that texts on screen tell the user to type.
namespace boyd::app {

/// Remembers --home and --config, before anything is shown. One thread.
void choose_hints(const arguments& args);

/// `text` with the --home and --config of this command line in each command `boyd VERB …`, so that
/// it works when it is typed; as it is when neither was given. Threads: any.
std::string as_hint(std::string text);

} // namespace boyd::app
