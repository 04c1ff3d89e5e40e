#include "integration/control/raw_client.hpp"

#include "support/wait.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace boyd::test {

raw_client::raw_client() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

raw_client::raw_client(const std::string& path) : raw_client() {
  if (!connect(path))
    hang_up();
}

bool raw_client::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool raw_client::send(std::string_view text) {
  while (!text.empty()) {
    pollfd one{fd_, POLLOUT, 0};
    if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0)
      return false;
    const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    if (sent > 0)
      text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void raw_client::end_of_sending() {
  ::shutdown(fd_, SHUT_WR);
}

void raw_client::hang_up() {
  if (fd_ >= 0)
    ::close(std::exchange(fd_, -1));
}

bool raw_client::read_some(std::string& into) {
  pollfd one{fd_, POLLIN, 0};
  if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0) {
    into += "timeout";
    return false;
  }
  std::array<char, 65536> piece{};
  const auto got = ::recv(fd_, piece.data(), piece.size(), 0);
  if (got > 0)
    into.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string raw_client::read_until(std::string_view text) {
  while (got_.find(text) == std::string::npos && read_some(got_)) {
  }
  return got_;
}

std::string raw_client::read_all() {
  while (read_some(got_)) {
  }
  return got_;
}

} // namespace boyd::test
