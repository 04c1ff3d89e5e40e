#include "unpack.hpp"

#include <memory>
#include <zstd.h>

namespace boyd::adapters {

namespace {

class unpacker {
 public:
  result<std::string> unpack(std::string_view& packed, std::size_t most) {
    if (!stream_)
      return fail(errc::limit_exceeded, "not enough memory to unpack it");
    const bool is_end = packed.empty();
    std::string bytes(most, '\0');
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    while (out.pos < out.size && (in.pos < in.size || holds_more_)) {
      wanted_ = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(wanted_) != 0)
        return fail(errc::corrupt, ZSTD_getErrorName(wanted_));
      holds_more_ = wanted_ != 0 && out.pos == out.size;
    }
    if (is_end && out.pos == 0 && wanted_ != 0)
      return fail(errc::corrupt, "the data ends too early");
    packed.remove_prefix(in.pos);
    bytes.resize(out.pos);
    return bytes;
  }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_{ZSTD_createDStream(),
                                                                     &ZSTD_freeDStream};
  std::size_t wanted_ = 1;  ///< bytes of the frame that has begun
  bool holds_more_ = false; ///< what was read may have more inside
};

} // namespace

unpack_step unpack_zstd() {
  return [one = std::make_shared<unpacker>()](std::string_view& packed, std::size_t most) {
    return one->unpack(packed, most);
  };
}

} // namespace boyd::adapters
