#pragma once

#include "boyd/mcp/protocol.hpp"
#include "json.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace boyd::mcp {

/// Adds the tools of one page of tools/list to `tools`; tools that cannot be offered are told to
/// `left_out`. Returns the cursor of the next page. `http`: marks for headers must be right.
std::optional<std::string> read_tools(const json& page, bool http, std::vector<server_tool>& tools,
                                      const std::function<void(const std::string&)>& left_out);

} // namespace boyd::mcp
