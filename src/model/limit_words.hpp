#pragma once

#include <string>
#include <string_view>

namespace boyd::model {

/// Numbers that are taken for seconds since 1970, not for a wait: the years 2001 to 2099.
inline constexpr double first_epoch = 1e9;
inline constexpr double last_epoch = 4.1e9;

/// The end of a text without escape sequences; what is not ASCII becomes a blank, one for several.
std::string plain_ascii(std::string_view text);

std::string lower_ascii(std::string text);

} // namespace boyd::model
