#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace boyd::test {

/// A client that sends any bytes.
class raw_client {
 public:
  /// Not yet connected, but its descriptor is taken.
  raw_client();
  explicit raw_client(const std::string& path);
  raw_client(raw_client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  raw_client& operator=(raw_client&&) = delete;
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client() { hang_up(); }

  bool connect(const std::string& path);
  /// False when the server has closed before it took all.
  bool send(std::string_view text);
  void end_of_sending();
  void hang_up();
  /// Reads until `text` has arrived, the server closes, or patience ends; returns all so far.
  std::string read_until(std::string_view text);
  /// Reads until the server closes; "timeout" is appended when it does not.
  std::string read_all();

 private:
  bool read_some(std::string& into);

  int fd_ = -1;
  std::string got_;
};

} // namespace boyd::test
