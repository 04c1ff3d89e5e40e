#include "boyd/core/sha256.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <new>

namespace boyd {

std::string sha256_hex(std::string_view bytes) {
  // Looked up once: for a short text that takes as long as the digest. Lives as long as OpenSSL.
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  // The one-shot digest fails only when OpenSSL cannot allocate its context.
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, algorithm, nullptr) != 1)
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
