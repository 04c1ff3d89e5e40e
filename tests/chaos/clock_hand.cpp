#include "clock_hand.hpp"

#include "support/sanitized.hpp"

#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace boyd::test {

clock_hand::clock_hand() {
  const auto path = directory_.file("clock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool sized = fd >= 0 && ::ftruncate(fd, sizeof(wall_clock)) == 0;
  void* at = sized ? ::mmap(nullptr, sizeof(wall_clock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  if (fd >= 0)
    ::close(fd);
  if (at == MAP_FAILED)
    throw std::runtime_error("cannot map " + path);
  clock_ = new (at) wall_clock{};
}

clock_hand::~clock_hand() {
  ::munmap(clock_, sizeof(wall_clock));
}

std::map<std::string, std::string> clock_hand::environment() const {
  std::map<std::string, std::string> all{{"LD_PRELOAD", BOYD_SHIFTED_CLOCK},
                                         {wall_clock_variable, directory_.file("clock")}};
  // Preloaded, it stands before the sanitizer's library, which would refuse to start.
  if (sanitized())
    all["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  return all;
}

void clock_hand::set(std::chrono::seconds ahead) {
  clock_->ahead_s = ahead.count();
}

} // namespace boyd::test
