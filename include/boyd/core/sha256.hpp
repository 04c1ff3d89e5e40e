#pragma once

#include <string>
#include <string_view>

namespace boyd {

/// The SHA-256 digest of `bytes` as 64 lower-case hexadecimal characters (FIPS 180-4).
std::string sha256_hex(std::string_view bytes);

} // namespace boyd
