#pragma once

#include "library_internal.hpp"
#include "place_gate_internal.hpp"
#include "transfer_internal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace boyd::adapters::curl_detail {

/// libcurl's multi handle, driven by epoll through its socket interface: what a wake-up costs does
/// not depend on how many requests wait, as it would with curl_multi_poll(). The client's thread
/// alone, but for wake().
class engine {
 public:
  /// `ended` is called for each request before its own on_end.
  using ended_function = std::function<void(http_handle)>;

  /// Error: `io_error` without libcurl, `overloaded` without descriptors or memory.
  static result<std::unique_ptr<engine>> make(const std::string& ca_file, ended_function ended);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  void add(std::unique_ptr<transfer> t);
  void cancel(const std::vector<http_handle>& handles);
  void cancel_all();
  /// Waits until something happens, wake() is called or `most` has passed, and does what is due.
  void run_once(milliseconds most);
  std::size_t size() const { return transfers_.size(); }

  /// The descriptor by which wake() ends a wait.
  int waker() const { return waker_; }
  /// Threads: any, while the engine lives.
  static void wake(int waker);

 private:
  engine(const library& lib, std::string ca_file, ended_function ended);
  bool open();

  // All noexcept: an exception must not pass through libcurl.
  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* known) noexcept;
  static int on_timer(CURLM* multi, long ms, void* self) noexcept;

  bool watch(curl_socket_t fd, int what);
  void go(http_handle handle);
  void go_all();
  void act(curl_socket_t fd, int what);
  void follow_connected();
  void reap();
  void end_overdue();
  void end(http_handle handle, const result<void>& r);
  int wait_ms(milliseconds most) const;

  const library& lib_;
  const std::string ca_file_;
  const ended_function ended_;
  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  int waker_ = -1;
  std::optional<clock::time_point> timer_;
  std::unordered_map<http_handle, std::unique_ptr<transfer>> transfers_;
  place_gate gate_;
  std::vector<http_handle> ready_;     ///< may go on: their place is connected, or they go first
  std::vector<http_handle> connected_; ///< since somebody last looked
  std::vector<http_handle> unwatched_; ///< whose socket epoll did not take
};

} // namespace boyd::adapters::curl_detail
