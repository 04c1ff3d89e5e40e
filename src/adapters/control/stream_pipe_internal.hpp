#pragma once

#include "control_server.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace boyd::adapters::control_detail {

/// What waits between those who send events and one connection. Senders on any thread, the
/// connection on the server's.
class stream_pipe {
 public:
  /// What a pipe asks of its connection; both are called on any thread and only post.
  struct wishes {
    std::function<void()> pump;  ///< take and write
    std::function<void()> close; ///< the reader is too slow
  };
  explicit stream_pipe(wishes wanted) : wanted_(std::move(wanted)) {}

  /// See event_stream::send.
  bool send(std::string_view chunk);
  /// Nothing more will come; what waits is still to be written.
  void finish();

  struct taken {
    std::string data; ///< empty: nothing to write now
    bool ended = false;
  };
  /// The connection: what is to be written next. It is asked for more when that is written; after
  /// an empty answer only when it is told to pump.
  taken take();
  /// The connection: it is gone.
  void close();

 private:
  std::mutex mutex_;
  wishes wanted_;
  std::string waiting_;
  std::size_t in_flight_ = 0;
  bool pumping_ = true; ///< from the start: the head is being written
  bool finished_ = false;
  bool closed_ = false;
};

/// What those who send hold.
std::shared_ptr<event_stream> make_stream_handle(std::shared_ptr<stream_pipe> pipe);

} // namespace boyd::adapters::control_detail
