#include "live_line.hpp"

#include "boyd/core/signal_stack.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/human_time.hpp"

#include <cstdio>
#include <system_error>
#include <utility>

namespace boyd::app {

namespace {

constexpr milliseconds interval = 1s;
/// Between two lines about one step, where lines stay.
constexpr milliseconds repeat_interval = 30s;

/// "12 s", "3 min 5 s"
std::string length_since(live_line::time since) {
  const auto passed = std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - since);
  return passed < 60s ? std::to_string(passed.count()) + " s" : plan::show_length(passed);
}

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

} // namespace

live_line::live_line(const terminal& t, std::string what, time since, elsewhere other)
    : terminal_(t), other_(t.rewrites ? elsewhere::nothing : other), since_(since),
      what_(std::move(what)) {
  if (!terminal_.rewrites && other_ == elsewhere::nothing)
    return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) { // nobody waits for this line
  }
}

live_line::~live_line() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    erase();
  }
  ended_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void live_line::tell(std::string what) {
  const std::lock_guard lock(mutex_);
  change(std::move(what));
}

void live_line::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  since_ = told_ = std::chrono::steady_clock::now();
  change(std::move(what));
  if (other_ == elsewhere::steps && !what_.empty())
    print_note(what_);
}

void live_line::change(std::string what) {
  what_ = std::move(what);
  if (what_.empty())
    erase();
  else if (is_late_)
    draw();
}

void live_line::beside(const std::function<void()>& write) {
  const std::lock_guard lock(mutex_);
  erase();
  write();
  if (is_late_)
    draw();
}

void live_line::run() {
  give_signal_stack();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval, [this] { return ends_; })) {
    is_late_ = true;
    draw();
    repeat();
  }
}

void live_line::draw() {
  if (ends_ || what_.empty() || !terminal_.rewrites)
    return;
  const auto end = " · " + length_since(since_);
  const auto taken = count_characters(end) + 1; // the last column stays free: it would wrap
  const auto room = terminal_.width > taken ? terminal_.width - taken : 1;
  write("\r\x1b[K" + terminal_.paint(colour::faint, one_line(what_, room) + end));
  is_shown_ = true;
}

/// What lasts is written again, where lines stay.
void live_line::repeat() {
  const auto now = std::chrono::steady_clock::now();
  if (other_ != elsewhere::steps || what_.empty() || now - told_ < repeat_interval)
    return;
  told_ = now;
  print_note(what_ + " (" + length_since(since_) + ")");
}

void live_line::erase() {
  if (std::exchange(is_shown_, false))
    write("\r\x1b[K");
}

} // namespace boyd::app
