#pragma once

#include "boyd/core/result.hpp"

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>

namespace boyd::adapters::control_detail {

/// Owns one descriptor.
class owned_fd {
 public:
  explicit owned_fd(int fd = -1) noexcept : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(other.release()) {}
  owned_fd& operator=(owned_fd&& other) noexcept;
  owned_fd(const owned_fd&) = delete;
  owned_fd& operator=(const owned_fd&) = delete;
  ~owned_fd();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

/// A Unix socket's file, named by its open directory: sun_path holds 107 bytes, a home may be
/// deeper, and /proc/self/fd/N/name always fits.
class socket_place {
 public:
  /// Opens the directory of `path`. Errors: `invalid_argument`, and the system's.
  static result<socket_place> open(const std::string& path);

  int directory() const noexcept { return directory_.get(); }
  const std::string& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }
  const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t address_size = sizeof(sockaddr_un);

  /// A connected non-blocking socket, or an invalid one with `error_number` set.
  owned_fd connect(int& error_number) const;

 private:
  owned_fd directory_;
  std::string path_;
  std::string name_;
  sockaddr_un address_{};
};

/// A listening, non-blocking socket and the file it made.
struct listening_socket {
  owned_fd fd;
  socket_place place;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  /// Removes the file, unless another one has taken its name.
  void remove_file() const;

  /// Its file has been removed, or its directory: nobody finds the socket any more.
  bool is_lost() const;
};

/// Binds and listens (0600), making the directory (0700) and replacing a dead socket.
/// Errors: see start_control_server.
result<listening_socket> listen_at(const std::string& path);

/// Who connected; -1 and 0 when the system does not say, or must not (another PID namespace).
struct socket_peer {
  std::int64_t user = -1;
  std::int64_t pid = 0;
};
socket_peer peer_of(int fd);

/// The user at the other end of `fd`; -1 when the system does not say.
std::int64_t peer_user(int fd);

} // namespace boyd::adapters::control_detail
