#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "http_types.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// How long a kept connection may be silent between two requests.
inline constexpr milliseconds http_idle_timeout = 60s;
/// From the end of the head to the end of the body.
inline constexpr milliseconds http_body_timeout = 30s;
/// One response, written to a client that reads slowly.
inline constexpr milliseconds http_write_timeout = 30s;
/// How long a handler may take over a request without `wait=1`.
inline constexpr milliseconds http_answer_timeout = 60s;
/// The same for /healthz and /readyz: whoever watches a node has to hear that it hangs.
inline constexpr milliseconds http_health_timeout = 5s;
/// How often the server looks whether its file is still there.
inline constexpr milliseconds http_file_check = 5s;
/// What `stop` grants to responses on their way.
inline constexpr milliseconds http_stop_grace = 1s;
/// Bytes that wait for one reader of events.
inline constexpr std::size_t http_stream_buffer_bytes = 256u << 10;

/// The path whose GET requests become event streams.
inline constexpr std::string_view events_path = "/api/v1/events";

/// One client that reads events. Letting the last reference go ends the stream properly after what
/// was sent. Threads: any; outlives the server harmlessly.
class event_stream {
 public:
  virtual ~event_stream() = default;

  /// Queues `chunk` (whole lines) without blocking. False: the client is gone, the server has
  /// stopped, or more than http_stream_buffer_bytes would wait: then the connection is closed.
  /// After the first false it stays false.
  virtual bool send(std::string_view chunk) = 0;
};

/// How a control server is made. The times and counts are options for the sake of tests.
struct control_server_options {
  /// Any length, as long as the file's name itself has at most 80 bytes. The directory is made
  /// (0700) when its parent exists.
  std::string socket_path;

  /// Called on the server's thread, so it must not block. `respond` may be called at once or later,
  /// from any thread; calls after the first do nothing, and a call after the client has gone or the
  /// server has stopped is harmless. When every copy of `respond` is dropped without a call the
  /// client gets 503 actor_down.
  std::function<void(http_request, std::function<void(http_response)> respond)> on_request;

  /// Called on the server's thread for each client when it is taken, with the process and the user
  /// that connected, by the kernel's word. A few reads of /proc long. May be empty.
  std::function<http_peer(std::int64_t pid, std::int64_t uid)> look_at_peer;

  /// GET of `events_path`, on the server's thread; the head of the answer is under way. When empty,
  /// such requests go to `on_request`.
  std::function<void(const http_request&, std::shared_ptr<event_stream>)> on_stream;

  milliseconds head_timeout = limits::http_head_timeout;
  milliseconds idle_timeout = http_idle_timeout;
  milliseconds body_timeout = http_body_timeout;
  milliseconds write_timeout = http_write_timeout;
  /// After it the client gets 503 timed_out. Requests with `wait=1` are exempt. Zero: no limit.
  milliseconds answer_timeout = http_answer_timeout;
  milliseconds health_timeout = http_health_timeout; ///< as above
  /// A socket file that somebody removed is made anew at the next look.
  milliseconds file_check = http_file_check;
  std::size_t max_connections = limits::http_connections;
};

/// HTTP/1.1 over a Unix socket (0600, own user and root only), on one thread of its own. Destroying
/// it stops it.
class control_server {
 public:
  virtual ~control_server() = default;

  /// Takes no new connection, removes the socket file it made, answers 503 to requests that wait,
  /// ends streams, gives what is being written up to http_stop_grace, closes everything and joins
  /// the thread. Any thread but the server's own; again is harmless.
  virtual void stop() = 0;
};

/// Starts to serve. Errors: `invalid_argument` for a path that cannot be, or without `on_request`;
/// `locked` when somebody answers on the socket (a dead one is replaced); `refused` when the
/// directory belongs to another user, is a symbolic link, or the path is no socket; `not_found`,
/// `io_error`, `no_space` from the system.
result<std::unique_ptr<control_server>> start_control_server(control_server_options options);

/// `e` as an answer: {"schema":"boyd.error/1","error":{code,what,where,next}} with its status.
/// Text that is not UTF-8 is mended.
http_response error_response(const error& e);

} // namespace boyd::adapters
