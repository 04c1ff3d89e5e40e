#include "boyd/core/crc32.hpp"

#include <cstdint>
#include <zlib.h>

namespace boyd {

std::string crc32_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr unsigned digit_bits = 4;
  auto sum = static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  std::string hex(crc32_digits, '0');
  for (auto digit = hex.rbegin(); digit != hex.rend(); ++digit, sum >>= digit_bits)
    *digit = digits[sum & 0xfU];
  return hex;
}

} // namespace boyd
