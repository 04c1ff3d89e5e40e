#pragma once

#include "boyd/core/result.hpp"
#include "boyd/mcp/protocol.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Headers that repeat parts of a request (revision 2026-07-28, streamable HTTP, "Request
/// Metadata").
namespace boyd::mcp {

/// `text` as the value of a header: as it is, or in Base64 between `=?base64?` and `?=` when it
/// could not be sent as it is, or would be taken for encoded.
std::string header_value(std::string_view text);

/// The x-mcp-header marks of a tool's schema (an object); an error for one that is against the
/// rules: then the tool is not to be offered over HTTP.
result<std::vector<param_header>> read_param_headers(std::string_view schema_json);

/// "Mcp-Param-…" headers for a call with these arguments (an object, or empty).
std::vector<std::pair<std::string, std::string>>
param_headers_of(const std::vector<param_header>& marks, std::string_view arguments_json);

} // namespace boyd::mcp
