#pragma once

#include "arguments.hpp"

#include <functional>
#include <set>
#include <string>

/// Commands that texts on screen tell the user to type.
namespace boyd::app {

/// Remembers --home and --config, before anything is shown. `all_verbs`: what may stand behind
/// `boyd`; asked for where one of the two was given. One thread.
void choose_hints(const arguments& args, const std::function<std::set<std::string>()>& all_verbs);

/// `text` with the --home and --config of this command line in each command `boyd VERB …`, so that
/// it works when it is typed; as it is when neither was given. Threads: any.
std::string as_hint(std::string text);

} // namespace boyd::app
