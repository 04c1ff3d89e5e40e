#include "boyd/core/sha256.hpp"

#include <openssl/sha.h>

#include <array>
#include <new>

namespace boyd {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  // The one-shot digest fails only when OpenSSL cannot allocate its context.
  if (SHA256(data, bytes.size(), digest.data()) == nullptr)
    throw std::bad_alloc{};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(digest.size() * 2);
  for (const unsigned char byte : digest) {
    hex += digits[byte >> 4];
    hex += digits[byte & 0xF];
  }
  return hex;
}

} // namespace boyd
