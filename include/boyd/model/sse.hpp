#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::model {

/// The longest event that is taken in.
inline constexpr std::size_t sse_event_bytes = 8u << 20;

/// One server-sent event (HTML Living Standard §9.2.6, "interpreting an event stream").
struct sse_event {
  std::string type; ///< empty: "message"
  std::string data; ///< the data lines joined by line feeds
};

/// Cuts a byte stream into events, however it was cut into pieces. Line ends may be CR, LF or CRLF;
/// a byte order mark at the start is skipped; comments are read over. Not thread-safe.
class sse_reader {
 public:
  /// Calls `take` for each event that `bytes` completes. Error `limit_exceeded` for an event beyond
  /// sse_event_bytes: then the stream is to be given up.
  result<void> feed(std::string_view bytes, const std::function<void(const sse_event&)>& take);

  /// The body has ended: calls `take` for an event that stands there without its empty line, which
  /// the standard throws away and servers send all the same.
  void finish(const std::function<void(const sse_event&)>& take);

  /// The data of the event that is not complete, whole lines and the one that is being read.
  std::string pending_data() const;

  /// Where the stream can be taken up again: the id of the last complete event that had one.
  const std::string& last_id() const { return last_id_; }
  /// What the server asks to wait before that; nothing: it has not said.
  std::optional<milliseconds> retry() const { return retry_; }

  /// Bytes of an event that is not complete.
  std::size_t pending() const { return line_.size() + event_.data.size(); }

 private:
  void read_line();
  void end_event(const std::function<void(const sse_event&)>& take);

  std::string line_;
  sse_event event_;
  std::string id_; ///< of the events from here on
  std::string last_id_;
  std::optional<milliseconds> retry_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool at_start_ = true;
  bool given_up_ = false;
};

} // namespace boyd::model
