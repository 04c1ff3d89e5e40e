#include "bench/peer/job_runner.hpp"

#include "bench/peer/driver_line.hpp"
#include "bench/support/queue_node.hpp"

#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace boyd::bench {

result<std::shared_ptr<job_runner>> job_runner::make(const settings& s) {
  auto made = std::shared_ptr<job_runner>(new job_runner(s));
  if (!s.log.empty()) {
    std::ifstream before(s.log);
    char what = 0;
    std::uint64_t number = 0;
    for (std::string line; std::getline(before, line);)
      if (std::istringstream words(line); words >> what >> number && what == 'e')
        made->effects_.insert(number);
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
  if (log_ >= 0)
    write(fmt::format("s {} {:.3f}\n", j.number, driver_time()));
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

void job_runner::write(const std::string& line) const {
  if (log_ >= 0 && ::write(log_, line.data(), line.size()) < 0)
    std::perror("bench_peer: the log of jobs");
}

bool job_runner::make_effect(std::uint64_t number) {
  const std::lock_guard lock(effects_mutex_);
  return effects_.insert(number).second;
}

void job_runner::end(const job& j) {
  // The driver takes a line without a time for nobody's end.
  if (log_ >= 0)
    write(make_effect(j.number) ? fmt::format("e {} {:.3f}\n", j.number, driver_time())
                                : fmt::format("r {}\n", j.number));
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
