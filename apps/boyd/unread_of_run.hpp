#pragma once

#include "client.hpp"
#include "json_view.hpp"

#include <string>
#include <vector>

namespace boyd::app {

/// "gone.md could not be read (no such file or directory); the run goes on without it", of each
/// text that the newest attempt was to be given. `execution`: its record.json.
std::vector<std::string> unread_in(const json& execution);

/// The same of a dispatch. What cannot be asked is not told. Blocks.
std::vector<std::string> unread_of_run(client& c, const json& dispatch);

} // namespace boyd::app
