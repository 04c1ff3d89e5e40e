#pragma once

#include "terminal.hpp"

#include <string>
#include <string_view>
#include <termios.h>

namespace boyd::app {

/// The whole screen of the terminal, on its alternate page: what stood there before is there again
/// at the end. Typed keys are not shown and need no line break. One at a time; one thread.
class full_screen {
 public:
  full_screen();
  ~full_screen();
  full_screen(const full_screen&) = delete;
  full_screen& operator=(const full_screen&) = delete;

  /// Shows as many of the lines as there is room for, and `foot` in the last row. Lines are no
  /// wider than the terminal.
  void draw(std::string_view text, std::string_view foot, const terminal& t);

  /// True when q was typed since the last question.
  bool wants_end();

 private:
  ::termios before_{};
  bool has_keys_ = false; ///< standard input is a terminal
};

} // namespace boyd::app
