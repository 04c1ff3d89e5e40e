#include "waiting_runner.hpp"

#include "adapters/posix/process_runner.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/improve/finding.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>

namespace boyd::app {

namespace {

/// Between two looks for a signal.
constexpr milliseconds look_interval = 100ms;

/// What one program tells, from the runner's thread to the one that waits.
struct program_watch {
  std::mutex mutex;
  std::condition_variable changed;
  improve::command_end told;
  std::optional<process_exit> end;

  void take(output_stream stream, std::string_view bytes) {
    const std::lock_guard lock(mutex);
    auto& text = stream == output_stream::out ? told.out : told.err;
    const auto room = improve::report_bytes - std::min(text.size(), improve::report_bytes);
    const auto kept = std::min(room, bytes.size());
    text.append(bytes.substr(0, kept));
    told.cut += bytes.size() - kept;
  }
};

} // namespace

result<std::unique_ptr<waiting_runner>> waiting_runner::make() {
  auto runner = adapters::make_process_runner({});
  if (!runner)
    return fail(std::move(runner.error()));
  return std::unique_ptr<waiting_runner>(new waiting_runner(std::move(*runner)));
}

improve::command_end waiting_runner::run(const improve::command_order& order,
                                         signal_watch& signals) {
  const auto watch = std::make_shared<program_watch>();
  process_spec spec;
  spec.argv = order.argv;
  spec.cwd = order.cwd;
  spec.environment = environment_;
  spec.environment.insert(spec.environment.end(), order.environment.begin(),
                          order.environment.end());
  spec.input = order.input;
  // What tests and linters make is the user's, not Boyd's.
  spec.umask = user_umask();
  process_events events;
  events.on_output = [watch](output_stream s, std::string_view bytes) { watch->take(s, bytes); };
  events.on_exit = [watch](const process_exit& e) {
    const std::lock_guard lock(watch->mutex);
    watch->end = e;
    watch->changed.notify_all();
  };
  const auto handle = runner_->start(std::move(spec), std::move(events));
  if (!handle) {
    improve::command_end none;
    none.started = false;
    none.start_error = to_string(handle.error());
    return none;
  }
  std::unique_lock lock(watch->mutex);
  milliseconds waited{0};
  bool ending = false;
  milliseconds kill_at = order.timeout;
  while (!watch->end) {
    watch->changed.wait_for(lock, look_interval);
    waited += look_interval;
    if (watch->end)
      break;
    if (!ending && (waited >= order.timeout || signals.interrupted())) {
      ending = true;
      watch->told.timed_out = waited >= order.timeout;
      kill_at = waited + limits::term_grace;
      runner_->signal(*handle, SIGTERM);
    } else if (ending && waited >= kill_at) {
      runner_->signal(*handle, SIGKILL);
    }
  }
  auto told = std::move(watch->told);
  told.started = watch->end->started;
  told.start_error = watch->end->start_error;
  told.exit_code = watch->end->exit_code;
  return told;
}

} // namespace boyd::app
