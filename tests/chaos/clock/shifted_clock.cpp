// Preloaded: the wall clock of a process is as far from the true one as its file says, at each
// moment. Clocks that nobody can set (monotonic, of a thread, of a process) are left alone.

#include "chaos/clock/wall_clock.hpp"

#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

boyd::test::wall_clock* open_settings() {
  const char* path = std::getenv(boyd::test::wall_clock_variable);
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  void* at = fd < 0 ? MAP_FAILED
                    : ::mmap(nullptr, sizeof(boyd::test::wall_clock), PROT_READ | PROT_WRITE,
                             MAP_SHARED, fd, 0);
  if (fd >= 0)
    ::close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<boyd::test::wall_clock*>(at);
}

/// Seconds to add to a wall clock. Opened at the first call, which is long before `main`.
std::int64_t ahead_s() {
  static auto* const settings = open_settings();
  const auto ahead = settings == nullptr ? 0 : settings->ahead_s.load(std::memory_order_relaxed);
  if (ahead != 0)
    settings->asked.fetch_add(1, std::memory_order_relaxed);
  return ahead;
}

} // namespace

// glibc declares these as functions that do not throw, and their arguments as not null.
extern "C" {

int clock_gettime(clockid_t id, timespec* time) noexcept {
  // Not by way of the next library: a sanitizer asks before its own is set up.
  const auto result = ::syscall(SYS_clock_gettime, id, time);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    time->tv_sec += ahead_s();
  return static_cast<int>(result);
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  constexpr long ns_per_us = 1000;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / ns_per_us;
  return result;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr)
    *into = now.tv_sec;
  return now.tv_sec;
}
}
