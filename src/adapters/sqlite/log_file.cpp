#include "log_file.hpp"

#include "../unique_fd.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace boyd::adapters::sqlite {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

tl::unexpected<error> failed(const char* doing, const std::string& path) {
  const int why = errno;
  return fail(why == ENOSPC ? errc::no_space : errc::io_error,
              std::string("the database log cannot be ") + doing + ": " + std::strerror(why), path,
              "check the disk");
}

/// `call` until no signal interrupts it.
template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t n = 0;
  do
    n = call();
  while (n < 0 && errno == EINTR);
  return n;
}

} // namespace

result<void> write_anew(const std::string& path) {
  const unique_fd file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file && errno == ENOENT)
    return {};
  if (!file)
    return failed("opened", path);
  std::vector<char> piece(piece_bytes);
  off_t at = 0;
  while (true) {
    const auto read =
        uninterrupted([&] { return ::pread(file.get(), piece.data(), piece.size(), at); });
    if (read < 0)
      return failed("read", path);
    if (read == 0)
      break;
    for (ssize_t done = 0; done < read;) {
      const auto written = uninterrupted([&] {
        return ::pwrite(file.get(), piece.data() + done, static_cast<std::size_t>(read - done),
                        at + done);
      });
      if (written == 0)
        errno = EIO; // it would never end
      if (written <= 0)
        return failed("written", path);
      done += written;
    }
    at += read;
  }
  if (at > 0 && ::fdatasync(file.get()) != 0)
    return failed("made durable", path);
  return {};
}

} // namespace boyd::adapters::sqlite
