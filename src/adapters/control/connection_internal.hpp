#pragma once

#include "control_server.hpp"
#include "http_text_internal.hpp"
#include "mailbox_internal.hpp"
#include "stream_pipe_internal.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace boyd::adapters::control_detail {

class connection;

/// Requests that were handed over and not answered yet, also those whose clients have left.
/// Threads: any.
struct requests_in_flight {
  std::atomic<std::size_t> quick = 0;   ///< those that are answered as soon as it can be
  std::atomic<std::size_t> waiting = 0; ///< with `wait=1`
  std::atomic<std::size_t> health = 0;  ///< of whoever watches the node
};

/// What a connection needs of its server; used on the server's thread alone.
class connection_host {
 public:
  virtual ~connection_host() = default;
  virtual const control_server_options& options() const = 0;
  virtual const std::shared_ptr<mailbox>& mail() const = 0;
  virtual const std::shared_ptr<requests_in_flight>& in_flight() const = 0;
  /// `gone` has closed itself.
  virtual void forget(const std::shared_ptr<connection>& gone) = 0;
};

/// One client: idle → head → body → handling → writing → idle, or handling → streaming. One request
/// at a time: what a client pipelines waits unread. The server's thread alone; answers and events
/// arrive through the mailbox.
class connection : public std::enable_shared_from_this<connection> {
 public:
  using socket_type = boost::asio::local::stream_protocol::socket;
  using error_code = boost::system::error_code;

  /// `peer` may be null.
  connection(connection_host& host, socket_type socket, std::shared_ptr<const http_peer> peer);

  void start();
  /// Ends politely: see control_server::stop.
  void shut_down();
  /// Ends at once.
  void close();
  /// Since when the client owes a request or the rest of its head; nothing: it owes none.
  std::optional<std::chrono::steady_clock::time_point> silent_since() const;
  /// The answer to request number `request`, unless that was answered or has gone.
  void answer(std::uint64_t request, const http_response& response);

 private:
  enum class phase { idle, head, body, handling, writing, streaming, lingering, closed };

  // Reading
  void await_request();
  void read_head();
  void on_head(error_code ec, std::size_t bytes);
  void read_body();
  std::optional<http_response> check_head(std::size_t bytes);
  void on_read_failure(error_code ec);

  // Handling
  void handle();
  void call_handler(http_request request, std::shared_ptr<void> place);
  std::shared_ptr<void> take_place(bool waits, bool health);
  void open_stream(const http_request& request);
  void watch_peer();

  // Writing
  void deliver(std::uint64_t request, const http_response& response);
  void write(const http_response& response, after_answer after);
  void on_written(error_code ec, after_answer after);
  void reject(const http_response& response);
  void linger(std::size_t allowance);
  void pump();
  void write_stream(std::string text, bool last);

  void arm(milliseconds limit);
  void disarm();
  void on_deadline();

  connection_host& host_;
  socket_type socket_;
  std::shared_ptr<const http_peer> peer_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer late_; ///< an answer that a fault holds back
  std::uint64_t armed_ = 0;        ///< a deadline that was replaced does nothing
  phase phase_ = phase::idle;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();

  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  http_request request_;
  std::uint64_t number_ = 0;                ///< of the request being handled
  std::shared_ptr<std::atomic<bool>> gone_; ///< of the request being handled: its client has left
  bool head_only_ = false;
  bool about_faults_ = false; ///< the request: must be answered, or faults could not be ended
  bool keep_alive_ = false;
  bool stopping_ = false;

  std::string out_;
  std::array<char, 4096> discarded_{};
  std::shared_ptr<stream_pipe> pipe_;
  bool chunked_ = true;
  bool stream_busy_ = false;
};

/// Whether the client at the other end has closed its socket; one that has only ended its sending
/// still reads.
bool has_left(int fd);

/// Sends a last answer to `fd` as far as that goes without waiting.
void send_at_once(int fd, const http_response& response);

} // namespace boyd::adapters::control_detail
