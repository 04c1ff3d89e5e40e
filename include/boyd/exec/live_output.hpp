#pragma once

#include "boyd/ports/process_runner.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// How much of `written`, the newest bytes of a stream that goes on, can be shown: whole lines, and
/// nothing of a private key (PEM) whose last line is not there yet.
std::size_t showable(std::string_view written);

/// The output of a program on its way to those who watch its run: in whole lines, without secrets,
/// and bounded, however fast the program writes. What is kept of the run is another matter
/// (output_keeper). Threads: any.
class live_output {
 public:
  struct piece {
    output_stream stream = output_stream::out;
    std::string text; ///< whole lines, but for the last piece of a stream
  };

  /// `secrets`: as config::redact_text takes them.
  explicit live_output(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {}

  /// True: nobody has been told of output yet, and somebody is to call `take`.
  bool add(output_stream stream, std::string_view bytes);

  /// What can be shown now; empty: the next `add` says so again. A private key (PEM) is held back
  /// until its last line is there. `at_end`: lines without an end, too.
  std::vector<piece> take(bool at_end = false);

 private:
  struct channel {
    std::string waiting;
    std::uint64_t left_out = 0; ///< bytes that had no room
  };

  /// The part of `waiting` that can be shown, taken out of it.
  static std::string ready(channel& from, bool at_end);

  std::mutex mutex_;
  std::vector<std::string> secrets_;
  std::array<channel, 2> channels_; ///< by output_stream
  bool told_ = false;
};

} // namespace boyd::exec
