#include "unpack.hpp"

#include <memory>
#include <vector>
#include <zstd.h>

namespace boyd::adapters {

result<std::string> unpack_zstd(std::string_view packed, std::size_t most) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          &ZSTD_freeDStream);
  if (!stream)
    return fail(errc::limit_exceeded, "not enough memory to unpack it");
  std::string bytes;
  std::vector<char> part(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t wanted = 1; // of the frame that has begun
  bool is_full = false;   // more of what was read may be inside
  while (in.pos < in.size || is_full) {
    ZSTD_outBuffer out{part.data(), part.size(), 0};
    wanted = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(wanted) != 0)
      return fail(errc::corrupt, ZSTD_getErrorName(wanted));
    if (bytes.size() + out.pos > most)
      return fail(errc::limit_exceeded,
                  "larger than " + std::to_string(most) + " bytes when unpacked");
    bytes.append(part.data(), out.pos);
    is_full = out.pos == out.size;
  }
  if (wanted != 0)
    return fail(errc::corrupt, "the data ends too early");
  return bytes;
}

} // namespace boyd::adapters
