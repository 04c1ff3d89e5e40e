#include "support/sim/processes.hpp"

#include "boyd/core/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace boyd::sim {

sim_process_runner::sim_process_runner(std::shared_ptr<const clock_port> clock)
    : clock_(std::move(clock)) {}

void sim_process_runner::define(const std::string& name, sim_program program) {
  define(name,
         [program = std::move(program)](const process_spec&, std::size_t) { return program; });
}

void sim_process_runner::define(
    const std::string& name,
    std::function<sim_program(const process_spec&, std::size_t earlier)> decide) {
  programs_[name] = std::move(decide);
}

void sim_process_runner::fail_next_starts(std::size_t n, int error_number) {
  failing_starts_ = n;
  failing_errno_ = error_number;
}

result<process_handle> sim_process_runner::start(process_spec spec, process_events events) {
  const std::string name = spec.argv.empty() ? std::string() : spec.argv.front();
  const auto found = programs_.find(name);
  process p;
  p.events = std::move(events);
  p.started = clock_->steady();
  if (found == programs_.end())
    p.program.start_errno = ENOENT;
  else
    p.program = found->second(spec, starts_[name]++);
  if (failing_starts_ > 0) {
    --failing_starts_;
    p.program.start_errno = failing_errno_;
  }
  if (p.program.start_errno != 0) {
    p.exit.started = false;
    p.exit.start_errno = p.program.start_errno;
    p.exit.start_error =
        "exec " + name + ": " + std::generic_category().message(p.program.start_errno);
    p.greeted = true;
    p.ends = p.started;
  } else if (!p.program.hang) {
    p.exit.signal = p.program.exit_signal;
    p.exit.exit_code = p.program.exit_signal == 0 ? p.program.exit_code : -1;
    p.ends = p.started + p.program.duration +
             (p.program.daemonise ? limits::term_grace : milliseconds{0});
  }
  p.reads = spec.input_stays;
  p.next_output = p.started + p.program.output_every;
  if (history_.size() < max_history)
    history_.push_back(std::move(spec));
  processes_.emplace(++last_handle_, std::move(p));
  peak_ = std::max(peak_, processes_.size());
  return last_handle_;
}

result<void> sim_process_runner::write(process_handle handle, std::string_view bytes) {
  const auto found = processes_.find(handle);
  if (found == processes_.end() || !found->second.reads)
    return fail(errc::not_found, "the process has ended, or its input is closed");
  process& p = found->second;
  if (!p.program.answers)
    return {};
  if (auto said = p.program.answers(bytes); !said.empty()) {
    p.said.push_back(std::move(said));
    p.said_at = clock_->steady();
  }
  return {};
}

void sim_process_runner::close_input(process_handle handle) {
  const auto found = processes_.find(handle);
  if (found == processes_.end() || !std::exchange(found->second.reads, false))
    return;
  process& p = found->second;
  if (p.program.ignore_close || p.ends)
    return;
  p.ends = clock_->steady();
  p.exit.exit_code = 0;
}

void sim_process_runner::signal(process_handle handle, int signal) {
  const auto found = processes_.find(handle);
  if (found == processes_.end())
    return;
  process& p = found->second;
  if (p.program.unkillable || (signal == SIGTERM && p.program.ignore_term) || !p.exit.started)
    return;
  const auto now = clock_->steady();
  if (p.ends && *p.ends <= now)
    return;
  p.ends = now;
  p.exit.signal = signal;
  p.exit.exit_code = -1;
}

std::size_t sim_process_runner::alive() const {
  const auto now = clock_->steady();
  return static_cast<std::size_t>(std::ranges::count_if(processes_, [&](const auto& entry) {
    return !entry.second.ends || *entry.second.ends > now;
  }));
}

bool sim_process_runner::alive(process_handle handle) const {
  const auto found = processes_.find(handle);
  return found != processes_.end() &&
         (!found->second.ends || *found->second.ends > clock_->steady());
}

bool sim_process_runner::has_event(const process& p) const {
  return !p.greeted || !p.said.empty() || p.ends || p.program.output_every.count() > 0;
}

steady_time sim_process_runner::due(const process& p) const {
  if (!p.greeted)
    return p.started;
  if (!p.said.empty())
    return p.said_at;
  if (p.program.output_every.count() > 0 && (!p.ends || p.next_output < *p.ends))
    return p.next_output;
  return *p.ends;
}

std::optional<steady_time> sim_process_runner::next_event() const {
  std::optional<steady_time> first;
  for (const auto& [handle, p] : processes_)
    if (has_event(p) && (!first || due(p) < *first))
      first = due(p);
  return first;
}

std::size_t sim_process_runner::step(steady_time now) {
  std::size_t delivered = 0;
  while (delivered < max_events) {
    const auto first = next_event();
    if (!first || *first > now)
      break;
    const auto found = std::find_if(processes_.begin(), processes_.end(), [&](const auto& entry) {
      return has_event(entry.second) && due(entry.second) == *first;
    });
    advance(found->first, *first);
    ++delivered;
  }
  return delivered;
}

/// Makes the next callback of one process. The process may be gone and the map changed afterwards:
/// a callback may start others.
void sim_process_runner::advance(process_handle handle, steady_time now) {
  process& p = processes_.at(handle);
  const auto on_output = p.events.on_output;
  if (!p.greeted) {
    p.greeted = true;
    const std::string out = p.program.output;
    const std::string err = p.program.errors;
    if (on_output && !out.empty())
      on_output(output_stream::out, out);
    if (on_output && !err.empty())
      on_output(output_stream::err, err);
    return;
  }
  if (!p.said.empty()) {
    const auto said = std::move(p.said.front());
    p.said.pop_front();
    if (on_output)
      on_output(output_stream::out, said);
    return;
  }
  if (p.program.output_every.count() > 0 && (!p.ends || p.next_output < *p.ends)) {
    p.next_output += p.program.output_every;
    if (on_output)
      on_output(output_stream::out, "tick\n");
    return;
  }
  process ended = std::move(p);
  processes_.erase(handle);
  ended.exit.wall = now - ended.started;
  if (ended.events.on_exit)
    ended.events.on_exit(ended.exit);
}

void sim_process_runner::crash() {
  processes_.clear();
}

} // namespace boyd::sim
