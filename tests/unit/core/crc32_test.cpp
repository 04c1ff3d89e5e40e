#include "boyd/core/crc32.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cstdint>
#include <string>

namespace boyd::crc32_test {

namespace {

/// By the definition, a bit at a time.
std::uint32_t slow_crc32(const std::string& bytes) {
  std::uint32_t sum = 0xffffffffU;
  for (const char c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~sum;
}

} // namespace

TEST_CASE("crc32: the sums of the standard", "[crc32]") {
  CHECK(crc32_hex("123456789") == "cbf43926");
  CHECK(crc32_hex("") == "00000000");
  CHECK(crc32_hex("The quick brown fox jumps over the lazy dog") == "414fa339");
}

TEST_CASE("crc32: eight bytes at once are the same as one bit after the other", "[crc32]") {
  REQUIRE(rc::check([](const std::string& bytes) {
    RC_ASSERT(std::stoul(crc32_hex(bytes), nullptr, 16) == slow_crc32(bytes));
  }));
}

} // namespace boyd::crc32_test
