#include "step_line.hpp"

#include "boyd/core/signal_stack.hpp"
#include "boyd/core/time.hpp"

#include <cstdio>
#include <utility>

namespace boyd::app {

namespace {

constexpr milliseconds tick_interval = 1s;
/// Between two lines about one step, where lines stay.
constexpr milliseconds line_interval = 30s;
constexpr const char* erase_line = "\r\x1b[K";

void put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::string seconds_of(milliseconds lasted) {
  return " (" + format_duration(std::chrono::floor<std::chrono::seconds>(lasted)) + ")";
}

} // namespace

void step_line::begin(const std::string& text) {
  text_ = text;
  began_ = clock_.steady();
  told_ = 0ms;
  draw(text_);
}

void step_line::tick() {
  const auto lasted = clock_.steady() - began_;
  if (text_.empty() || lasted < tick_interval ||
      (!terminal_.is_tty && lasted - told_ < line_interval))
    return;
  told_ = lasted;
  draw(text_ + seconds_of(lasted));
}

void step_line::clear() {
  if (is_drawn_ && terminal_.is_tty)
    put(erase_line);
  is_drawn_ = false;
  text_.clear();
}

void step_line::draw(const std::string& text) {
  if (!terminal_.is_tty)
    return print_note(text);
  constexpr std::string_view name = "boyd: ";
  // The last column stays free: a terminal may go on to the next line there.
  put(erase_line + std::string(name) + one_line(text, terminal_.width - name.size() - 1));
  is_drawn_ = true;
}

ticker::ticker(std::function<void()> tick)
    : thread_([this, tick = std::move(tick)] {
        give_signal_stack();
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, tick_interval, [this] { return ends_; }))
          tick();
      }) {}

ticker::~ticker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

} // namespace boyd::app
