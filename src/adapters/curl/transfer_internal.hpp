#pragma once

#include "boyd/ports/http_client.hpp"
#include "library_internal.hpp"
#include "request_internal.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::adapters::curl_detail {

using clock = std::chrono::steady_clock;

/// One request, from its start to its end: libcurl's handle with our options and callbacks. The
/// client's thread alone.
class transfer {
 public:
  transfer(http_handle handle, checked_request request, http_events events,
           clock::time_point started);
  ~transfer();
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;

  http_handle handle() const { return handle_; }
  const checked_request& request() const { return request_; }
  /// Host, port and scheme: requests with the same one can share a connection.
  const std::string& place() const { return place_; }
  /// When the connection must stand, and when the last byte must have come.
  clock::time_point connect_by() const { return started_ + request_.connect_timeout; }

  /// Makes libcurl's handle with what is left of the limits. Its handle is added to `connected`,
  /// which outlives it, when its connection stands. Error: `overloaded` without memory,
  /// `timed_out`.
  result<void> prepare(const library& lib, const std::string& ca_file, clock::time_point now,
                       std::vector<http_handle>& connected);
  /// libcurl's handle; null before prepare().
  CURL* easy() const { return easy_; }
  /// The one whose handle this is.
  static transfer& of(const library& lib, CURL* easy);

  /// A connection stands and the request is about to be sent.
  bool connected() const { return connected_; }
  /// The error of a time limit, by how far it came.
  error timed_out() const;
  /// Why the request must end, when that is not libcurl's to say.
  void fail_with(error e);
  /// What libcurl's verdict means.
  result<void> outcome(CURLcode code) const;
  /// Tells the caller; the last thing to be called.
  void end(const result<void>& r) const;

 private:
  // All noexcept: an exception must not pass through libcurl.
  static std::size_t on_header(char* text, std::size_t one, std::size_t size, void* self) noexcept;
  static std::size_t on_body(char* text, std::size_t one, std::size_t size, void* self) noexcept;
  static int on_connected(void* self, char* to, char* from, int to_port, int from_port) noexcept;
  static curl_socket_t open_socket(void* self, curlsocktype purpose,
                                   curl_sockaddr* address) noexcept;

  bool take_header(std::string_view line);
  bool take_body(std::string_view bytes);
  void begin_answer(std::string_view status_line);
  void set_method();
  void set_limits(clock::time_point now);
  std::string cause(CURLcode code) const;

  template <class Value>
  void set(CURLoption option, Value value);

  const http_handle handle_;
  checked_request request_;
  const http_events events_;
  const std::string place_;
  const clock::time_point started_;
  const library* lib_ = nullptr;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> said_{}; ///< libcurl's own words
  http_head head_;
  bool head_told_ = false;
  bool connected_ = false;
  std::vector<http_handle>* tell_connected_ = nullptr;
  bool set_all_ = true;
  std::size_t head_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::optional<error> own_;
};

} // namespace boyd::adapters::curl_detail
