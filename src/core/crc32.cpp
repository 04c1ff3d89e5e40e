#include "boyd/core/crc32.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace boyd {

namespace {

constexpr std::size_t bytes_at_once = 8;
constexpr std::size_t byte_values = 256;
constexpr unsigned byte_bits = 8;

using crc_tables = std::array<std::array<std::uint32_t, byte_values>, bytes_at_once>;

/// What each value of a byte does to the sum, with so many bytes behind it: eight bytes are then
/// looked up at once, which takes a fifth of the time (slicing by eight).
constexpr crc_tables make_tables() {
  constexpr std::uint32_t polynomial = 0xedb88320U;
  crc_tables tables{};
  for (std::uint32_t value = 0; value < byte_values; ++value) {
    auto sum = value;
    for (unsigned bit = 0; bit < byte_bits; ++bit)
      sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? polynomial : 0U);
    tables[0][value] = sum;
  }
  for (std::size_t behind = 1; behind < bytes_at_once; ++behind)
    for (std::size_t value = 0; value < byte_values; ++value) {
      const auto before = tables[behind - 1][value];
      tables[behind][value] = (before >> byte_bits) ^ tables[0][before & 0xffU];
    }
  return tables;
}

constexpr crc_tables tables = make_tables();

std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t sum = 0xffffffffU;
  while (bytes.size() >= bytes_at_once) {
    std::array<unsigned char, bytes_at_once> next{};
    std::memcpy(next.data(), bytes.data(), bytes_at_once);
    for (std::size_t i = 0; i < sizeof sum; ++i)
      next[i] = static_cast<unsigned char>(next[i] ^ (sum >> (byte_bits * i)));
    sum = 0;
    for (std::size_t i = 0; i < bytes_at_once; ++i)
      sum ^= tables[bytes_at_once - 1 - i][next[i]];
    bytes.remove_prefix(bytes_at_once);
  }
  for (const char c : bytes)
    sum = (sum >> byte_bits) ^ tables[0][(sum ^ static_cast<unsigned char>(c)) & 0xffU];
  return ~sum;
}

} // namespace

std::string crc32_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr unsigned digit_bits = 4;
  auto sum = crc32_of(bytes);
  std::string hex(crc32_digits, '0');
  for (auto digit = hex.rbegin(); digit != hex.rend(); ++digit, sum >>= digit_bits)
    *digit = digits[sum & 0xfU];
  return hex;
}

} // namespace boyd
