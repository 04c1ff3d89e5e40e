#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace boyd {

inline constexpr std::size_t crc32_digits = 8;

/// CRC-32 of IEEE 802.3, as eight lower-case hexadecimal digits. Finds what a disk does to a line,
/// not what a person does. Pure; threads: any.
std::string crc32_hex(std::string_view bytes);

} // namespace boyd
