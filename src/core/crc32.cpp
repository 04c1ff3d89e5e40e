#include "boyd/core/crc32.hpp"

#include <boost/crc.hpp>

#include <fmt/format.h>

namespace boyd {

std::string crc32_hex(std::string_view bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return fmt::format("{:0{}x}", sum.checksum(), crc32_digits);
}

} // namespace boyd
