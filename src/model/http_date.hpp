#pragma once

#include "boyd/core/time.hpp"

#include <optional>
#include <string_view>

namespace boyd::model {

/// A date of HTTP in any of its three forms (RFC 9110 §5.6.7).
std::optional<utc_time> parse_http_date(std::string_view text);

} // namespace boyd::model
