#include "service_manager.hpp"

#include "errors.hpp"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace boyd::adapters {

namespace {

/// The value of an environment variable, which is then removed; empty: there is none.
std::string take(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<long long> number(const std::string& text) {
  long long n = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, n);
  return failed == std::errc{} && at == end && n > 0 ? std::optional(n) : std::nullopt;
}

} // namespace

result<service_manager> service_manager::from_environment() {
  service_manager m;
  m.address_ = take("NOTIFY_SOCKET");
  const auto limit = number(take("WATCHDOG_USEC"));
  const auto whose = number(take("WATCHDOG_PID"));
  if (limit && (!whose || *whose == ::getpid()))
    m.watchdog_ = std::chrono::duration_cast<milliseconds>(std::chrono::microseconds{*limit});
  if (m.address_.empty())
    return m;
  const bool known = m.address_.front() == '/' || m.address_.front() == '@';
  if (!known || m.address_.size() < 2 || m.address_.size() >= sizeof(sockaddr_un::sun_path))
    return fail(errc::invalid_argument, "not the address of a unix socket: " + m.address_,
                "NOTIFY_SOCKET");
  m.socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (m.socket_.get() < 0)
    return fail(system_error(errno, "socket", "NOTIFY_SOCKET"));
  return m;
}

result<void> service_manager::notify(std::string_view state) const {
  if (!present())
    return {};
  ::sockaddr_un to{};
  to.sun_family = AF_UNIX;
  address_.copy(to.sun_path, sizeof to.sun_path - 1);
  // An abstract address begins with a zero byte, and only its own bytes count (unix(7)).
  if (to.sun_path[0] == '@')
    to.sun_path[0] = '\0';
  const auto size = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + address_.size());
  const auto sent = ::sendto(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const ::sockaddr*>(&to), size);
  if (sent != static_cast<ssize_t>(state.size()))
    return fail(system_error(errno, "send", address_));
  return {};
}

} // namespace boyd::adapters
