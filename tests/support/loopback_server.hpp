#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::test {

/// A server on loopback that says one thing to whoever asks, or nothing and keeps the connection.
class loopback_server {
 public:
  explicit loopback_server(std::string answer)
      : answer_(std::move(answer)), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), size) != 0 || ::listen(fd_, 16) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("no server on loopback");
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~loopback_server() {
    ending_ = true;
    thread_.join();
    for (const int fd : kept_)
      ::close(fd);
    ::close(fd_);
  }
  loopback_server(const loopback_server&) = delete;
  loopback_server& operator=(const loopback_server&) = delete;

  std::string address(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(port_);
  }
  /// The requests so far, as they came.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    constexpr int look_ms = 20;
    while (!ending_) {
      pollfd one{fd_, POLLIN, 0};
      if (::poll(&one, 1, look_ms) <= 0)
        continue;
      const int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0)
        talk(client);
    }
  }

  void talk(int client) {
    constexpr timeval longest{2, 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    std::string text;
    std::array<char, 4096> part{};
    while (text.find("\r\n\r\n") == std::string::npos) {
      const auto n = ::recv(client, part.data(), part.size(), 0);
      if (n <= 0)
        break;
      text.append(part.data(), static_cast<std::size_t>(n));
      if (!text.starts_with("GET"))
        break;
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(text));
    }
    if (answer_.empty()) {
      kept_.push_back(client);
      return;
    }
    (void)::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  std::string answer_;
  int fd_;
  std::uint16_t port_ = 0;
  std::atomic<bool> ending_ = false;
  std::vector<int> kept_; ///< the server's thread alone
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

} // namespace boyd::test
