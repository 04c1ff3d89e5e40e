#include "bench/peer/driver_line.hpp"

#include "bench/support/statistics.hpp"

#include <iostream>
#include <thread>
#include <unistd.h>
#include <utility>

namespace boyd::bench {

using nlohmann::json;

double driver_time() {
  return std::chrono::duration<double, std::milli>(stopwatch_clock::now().time_since_epoch())
      .count();
}

void tell_driver(const std::string& event, json fields) {
  fields["ev"] = event;
  const auto line = "@@" + fields.dump() + "\n";
  // Shorter than PIPE_BUF: lines of several threads do not mix.
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0)
    ::_exit(1);
}

driver_commands::driver_commands() : inbox_(std::make_shared<inbox>()) {
  std::thread([in = inbox_] {
    for (std::string line; std::getline(std::cin, line);) {
      auto command = json::parse(line, nullptr, false);
      {
        const std::lock_guard lock(in->mutex);
        in->lines.push_back(std::move(command));
      }
      in->changed.notify_one();
    }
    ::_exit(0);
  }).detach();
}

json driver_commands::next() {
  std::unique_lock lock(inbox_->mutex);
  inbox_->changed.wait(lock, [&] { return !inbox_->lines.empty(); });
  auto command = std::move(inbox_->lines.front());
  inbox_->lines.pop_front();
  return command;
}

} // namespace boyd::bench
