#include "node_guard.hpp"

#include "exit_codes.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <unistd.h>
#include <vector>

namespace boyd::app {

namespace {

/// The manager is fed at least twice within its limit (sd_watchdog_enabled(3)).
constexpr int feeds_per_limit = 2;

/// What the process may take beyond its own deadline: it names what is left, and why, before the
/// manager's SIGKILL could end that.
constexpr milliseconds last_words = 10s;

/// The time that a process-wide clock shows, for RELOADING (sd_notify(3)).
std::chrono::microseconds monotonic() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

std::string status_of(const pulse_report& report) {
  std::string text;
  const auto add = [&](const std::string& name, const char* how) {
    text += (text.empty() ? "" : ", ") + name + how;
  };
  for (const auto& p : report.silent)
    add(p.name, " does not answer");
  for (const auto& name : report.parked)
    add(name, " is parked");
  return text.empty() ? "runs" : text;
}

} // namespace

node_guard::node_guard(const live_node& node, const adapters::service_manager& manager,
                       milliseconds interval)
    : node_(node), manager_(manager), interval_(interval), watchdog_(interval),
      next_(std::chrono::steady_clock::now() + interval) {
  if (const auto limit = manager.watchdog())
    interval_ = std::min(interval_, *limit / feeds_per_limit);
}

std::string node_guard::look() {
  const auto now = std::chrono::steady_clock::now();
  const auto report = node_.pulse();
  if (now < next_)
    return report.giving_up;
  next_ = now + interval_;
  const auto verdict = watchdog_.look(
      report, steady_time{std::chrono::duration_cast<milliseconds>(now.time_since_epoch())});
  // A drain may rightly take an hour, for the scheduler beats and the store answers meanwhile; what
  // is stuck would not be less so at the deadline of the stop.
  if (!verdict.stuck.empty()) {
    spdlog::critical("node: the watchdog stops the process{}; not responding: {}",
                     stopping_ ? " while stopping" : "", verdict.stuck);
    spdlog::default_logger()->flush();
    ::_exit(stopping_ ? exit_code::overdue : exit_code::stuck);
  }
  if (verdict.progress)
    say("WATCHDOG=1");
  if (!stopping_)
    say_status(report);
  return report.giving_up;
}

void node_guard::say_ready() {
  status_ = "runs"; // if it is not well, the next look says so again
  say("READY=1\nSTATUS=" + status_);
}

void node_guard::say_reloading() {
  status_ = "reads its configuration again";
  say("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic().count()) + "\nSTATUS=" + status_);
}

void node_guard::say_stopping(milliseconds limit) {
  stopping_ = true;
  const auto usec =
      std::chrono::duration_cast<std::chrono::microseconds>(limit + last_words).count();
  say("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(usec) +
      "\nSTATUS=stops; running attempts end or are given back");
}

void node_guard::say(const std::string& what) const {
  if (auto told = manager_.notify(what); !told)
    spdlog::warn("node: cannot notify the service manager: {}", to_string(told.error()));
}

void node_guard::say_status(const pulse_report& report) {
  auto text = status_of(report);
  if (text == status_)
    return;
  status_ = std::move(text);
  say("STATUS=" + status_);
}

} // namespace boyd::app
