#include "bench/peer/job_runner.hpp"

#include "bench/peer/driver_line.hpp"
#include "bench/support/queue_node.hpp"

#include <array>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace boyd::bench {

result<std::shared_ptr<job_runner>> job_runner::make(const settings& s) {
  auto made = std::shared_ptr<job_runner>(new job_runner(s));
  if (!s.log.empty()) {
    made->log_ = ::open(s.log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (made->log_ < 0)
      return fail(errc::io_error, "cannot be opened", s.log);
  }
  if (s.lasts > milliseconds{0})
    made->thread_ = std::thread([runner = made.get()] { runner->work(); });
  return made;
}

job_runner::~job_runner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable())
    thread_.join();
  if (log_ >= 0)
    ::close(log_);
}

result<process_handle> job_runner::start(process_spec spec, process_events events) {
  job j;
  j.number = job_number(spec.input);
  j.events = std::move(events);
  if (settings_.announce)
    tell_driver("started", {{"i", j.number}, {"t", driver_time()}});
  write('s', j.number);
  if (settings_.lasts <= milliseconds{0}) {
    end(j);
    return process_handle{1};
  }
  j.ends = stopwatch_clock::now() + settings_.lasts;
  process_handle handle = 0;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push(std::move(j));
    handle = ++last_;
  }
  changed_.notify_one();
  return handle;
}

void job_runner::signal(process_handle, int) {
  // Every job ends by itself in a moment.
}

std::size_t job_runner::running() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void job_runner::write(char what, std::uint64_t number) const {
  if (log_ < 0)
    return;
  std::array<char, 64> line{};
  const int n = std::snprintf(line.data(), line.size(), "%c %llu %.3f\n", what,
                              static_cast<unsigned long long>(number), driver_time());
  if (n > 0 && ::write(log_, line.data(), static_cast<std::size_t>(n)) < 0)
    std::perror("bench_peer: the log of jobs");
}

void job_runner::end(const job& j) const {
  write('e', j.number);
  process_exit exit;
  exit.exit_code = 0;
  j.events.on_exit(exit);
}

void job_runner::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (jobs_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto ends = jobs_.top().ends;
    if (stopwatch_clock::now() < ends) {
      changed_.wait_until(lock, ends);
      continue;
    }
    const job over = jobs_.top();
    jobs_.pop();
    lock.unlock();
    end(over);
    lock.lock();
  }
}

} // namespace boyd::bench
