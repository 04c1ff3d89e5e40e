#include "trigger.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace boyd::test {

namespace {

constexpr auto request = "POST /api/v1/cycles HTTP/1.1\r\nHost: boyd\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\nContent-Length: 18\r\n\r\n"
                         "{\"trigger\": \"api\"}";

} // namespace

trigger::trigger(const std::string& home) {
  const auto path = home + "/run/control.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto size = std::strlen(request);
  const bool sent =
      ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd_, request, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  if (!sent) {
    ::close(fd_);
    fd_ = -1;
  }
}

trigger::~trigger() {
  if (fd_ >= 0)
    ::close(fd_);
}

trigger::trigger(trigger&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), answer_(std::move(other.answer_)) {}

trigger& trigger::operator=(trigger&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(answer_, other.answer_);
  return *this;
}

bool trigger::ended() {
  while (fd_ >= 0) {
    std::array<char, 4096> some;
    const auto n = ::recv(fd_, some.data(), some.size(), 0);
    if (n > 0) {
      answer_.append(some.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return false;
    ::close(fd_);
    fd_ = -1;
  }
  return true;
}

std::optional<std::string> trigger::admitted() const {
  const auto body = answer_.find("\r\n\r\n");
  if (!answer_.starts_with("HTTP/1.1 202") || body == std::string::npos)
    return std::nullopt;
  const auto json = nlohmann::json::parse(answer_.substr(body), nullptr, false);
  if (!json.is_object() || !json.value("admitted", false))
    return std::nullopt;
  return json.value("cycle_id", "");
}

} // namespace boyd::test
