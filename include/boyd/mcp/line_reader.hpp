#pragma once

#include "boyd/core/result.hpp"
#include "boyd/mcp/json_rpc.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace boyd::mcp {

/// Cuts what a server writes into lines, one message each, however it came in pieces. A carriage
/// return before the line feed is not part of the line; empty lines are read over. Not thread-safe.
class line_reader {
 public:
  explicit line_reader(std::size_t most = message_bytes) : most_(most) {}

  /// Calls `take` for each line that `bytes` completes. Error `limit_exceeded` for a line that is
  /// longer than `most`: nothing is taken from then on, the stream is to be given up.
  result<void> feed(std::string_view bytes, const std::function<void(std::string_view)>& take);

  /// Bytes of a line that is not complete.
  std::size_t pending() const { return line_.size(); }

 private:
  std::size_t most_;
  std::string line_;
  bool given_up_ = false;
};

} // namespace boyd::mcp
