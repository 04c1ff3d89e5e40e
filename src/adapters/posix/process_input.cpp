#include "process_input.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

void waiting_input::open(process_handle handle, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(handle, bytes);
}

result<void> waiting_input::add(process_handle handle, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto it = waiting_.find(handle);
  if (it == waiting_.end())
    return fail(errc::not_found, "the process has ended, or its input is closed");
  if (bytes > process_input_bytes - std::min(it->second, process_input_bytes))
    return fail(errc::overloaded, "the process does not read its input: " +
                                      std::to_string(it->second) + " bytes are waiting");
  it->second += bytes;
  return {};
}

void waiting_input::taken(process_handle handle, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto it = waiting_.find(handle); it != waiting_.end())
    it->second -= std::min(it->second, bytes);
}

bool waiting_input::close(process_handle handle) {
  const std::lock_guard lock(mutex_);
  return waiting_.erase(handle) > 0;
}

void job_input::add(std::string_view more) {
  // What was written already makes room.
  if (at > 0)
    bytes.erase(0, std::exchange(at, 0));
  bytes += more;
}

job_input::state job_input::write_to(int fd, std::size_t& written) {
  if (at == bytes.size() && stays && !watched)
    return state::over; // told all the same: nobody reads it any more
  if (at < bytes.size()) {
    const auto n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return state::waits;
    if (n <= 0)
      return state::over;
    at += static_cast<std::size_t>(n);
    written += static_cast<std::size_t>(n);
    if (at < bytes.size())
      return state::waits;
  }
  bytes = {};
  at = 0;
  return stays ? state::idle : state::over;
}

} // namespace boyd::adapters
