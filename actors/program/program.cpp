#include "actors/program/program.hpp"

#include "boyd/core/text.hpp"
#include "boyd/exec/exit_class.hpp"
#include "boyd/exec/output_keeper.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <utility>

namespace boyd {

namespace {

/// What is kept of stderr for the message about a failure; bytes.
constexpr std::size_t diagnostics_bytes = 2u << 10;
/// CAF cannot cancel a delayed message, and one keeps its receiver's memory: longer waits are cut
/// into steps of this length.
constexpr milliseconds longest_wait = 5s;
/// An end that nobody reported for so long will not be reported.
constexpr milliseconds report_patience = 5s;

} // namespace

/// Comes in on the runner's thread.
struct program::output {
  std::mutex mutex;
  std::size_t cap;
  bool merges;
  exec::output_keeper out;
  exec::output_keeper err{diagnostics_bytes};

  output(std::size_t bytes, bool both) : cap(bytes), merges(both), out(bytes) {}
};

std::string problem_of(const program_outcome& outcome) {
  const auto& exit = outcome.exit;
  if (exit.started && outcome.timed_out)
    return "timed out after " + format_duration(outcome.timeout);
  if (exit.started && exit.signal == 0 && exit.exit_code == 0)
    return {};
  auto why = exec::describe_exit(exit);
  if (const auto said = first_line(outcome.diagnostics); !said.empty())
    why += ": " + std::string(cut_characters(said, limits::summary_characters));
  return why;
}

program::on_end program::tells(const caf::actor_addr& owner, std::uint64_t number) {
  return [owner, number](const process_exit& e) {
    if (auto strong = caf::actor_cast<caf::actor>(owner))
      caf::anon_send(strong, program_ended{{}, number, e});
  };
}

program::program(std::shared_ptr<process_runner> processes, program_order order, steady_time now,
                 on_end ended)
    : processes_(std::move(processes)),
      output_(std::make_shared<output>(order.output_bytes, order.merges)), timeout_(order.timeout),
      grace_(order.grace), due_(now + order.timeout) {
  process_events events;
  events.on_output = [kept = output_](output_stream stream, std::string_view bytes) {
    const std::lock_guard lock(kept->mutex);
    (kept->merges || stream == output_stream::out ? kept->out : kept->err).append(bytes);
  };
  events.on_exit = ended;
  if (order.points)
    events = faults::watched(std::move(events), order.points->events);
  result<process_handle> started = 0;
  if (auto passed = order.points ? faults::pass(order.points->start) : result<void>{}; !passed)
    started = fail(std::move(passed.error()));
  else
    started = processes_->start(std::move(order.spec), std::move(events));
  if (started) {
    handle_ = *started;
    return;
  }
  process_exit failed;
  failed.started = false;
  failed.start_error = to_string(started.error());
  ended(failed);
}

program::~program() {
  kill();
}

void program::kill() {
  if (handle_)
    processes_->signal(*handle_, SIGKILL);
}

result<milliseconds> program::look(steady_time now) {
  if (!handle_)
    return longest_wait;
  if (!processes_->runs(*handle_)) {
    unreported_ = unreported_.value_or(now);
    if (now - *unreported_ >= report_patience)
      return fail(errc::io_error, "the program ended without an exit status");
  }
  if (now >= due_ && step_ == step::killed)
    return fail(errc::timed_out, "the program does not end, not even after SIGKILL");
  if (now >= due_) {
    const bool kills = step_ == step::terminated || grace_.count() == 0;
    processes_->signal(*handle_, kills ? SIGKILL : SIGTERM);
    step_ = kills ? step::killed : step::terminated;
    due_ = now + std::max(grace_, limits::term_grace);
  }
  return std::min(longest_wait, std::chrono::duration_cast<milliseconds>(due_ - now));
}

program_outcome program::outcome(process_exit exit) {
  handle_.reset();
  program_outcome all;
  all.exit = std::move(exit);
  all.timed_out = step_ != step::running;
  all.timeout = timeout_;
  const std::lock_guard lock(output_->mutex);
  auto kept = output_->out.render(output_->cap);
  all.output = std::move(kept.text);
  all.cut = kept.cut;
  all.total = output_->out.total();
  all.diagnostics = output_->err.render(diagnostics_bytes).text;
  return all;
}

} // namespace boyd
