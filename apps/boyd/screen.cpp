#include "screen.hpp"

#include <algorithm>
#include <cstdio>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace boyd::app {

namespace {

constexpr const char* begin_screen =
    "\x1b[?1049h\x1b[?25l\x1b[?7l"; // the other page, no cursor, no wrapping
constexpr const char* end_screen = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr const char* to_top = "\x1b[H";
constexpr const char* clear_line = "\x1b[2K";
constexpr const char* line_break = "\r\n";
constexpr const char* end_of_page = "\x1b[J";
constexpr std::size_t standard_height = 24;

std::size_t height() {
  struct ::winsize size {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row
                                                                           : standard_height;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

} // namespace

full_screen::full_screen() {
  has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  print(begin_screen);
  std::fflush(stdout);
}

full_screen::~full_screen() {
  print(end_screen);
  std::fflush(stdout);
  if (has_keys_)
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void full_screen::draw(std::string_view text, std::string_view foot, const terminal& t) {
  const auto lines = lines_of(text);
  const auto room = height() - 1;
  const auto shown = lines.size() <= room ? lines.size() : room - 1;
  std::string page = to_top;
  for (std::size_t i = 0; i < shown; ++i)
    page.append(clear_line).append(lines[i]).append(line_break);
  if (shown < lines.size())
    page += clear_line +
            t.paint(colour::faint,
                    "  … " + std::to_string(lines.size() - shown) + " more lines: boyd status") +
            line_break;
  page += clear_line + t.paint(colour::faint, one_line(foot, t.width)) + end_of_page;
  print(page);
  std::fflush(stdout);
}

bool full_screen::wants_end() {
  ::pollfd fd{STDIN_FILENO, POLLIN, 0};
  char key = 0;
  while (has_keys_ && ::poll(&fd, 1, 0) == 1 && ::read(STDIN_FILENO, &key, 1) == 1)
    if (key == 'q' || key == 'Q')
      return true;
  return false;
}

} // namespace boyd::app
