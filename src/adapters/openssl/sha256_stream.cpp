#include "boyd/core/sha256_stream.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <new>

namespace boyd {

struct sha256_stream::state {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

sha256_stream::sha256_stream() : state_(std::make_unique<state>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc{};
}

sha256_stream::~sha256_stream() = default;

void sha256_stream::append(std::string_view bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1)
    throw std::bad_alloc{};
}

std::string sha256_stream::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) != 1)
    throw std::bad_alloc{};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += digits[byte >> 4];
    hex += digits[byte & 0xF];
  }
  return hex;
}

} // namespace boyd
