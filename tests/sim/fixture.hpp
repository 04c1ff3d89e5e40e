#pragma once

#include "boyd/config/configuration.hpp"

#include <spdlog/spdlog.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace boyd::sim {

/// Agents with `prompt` on a half-hourly kernel, two at once: enough for queues, retries, overlaps
/// and deadlines.
inline config::configuration half_hourly(std::initializer_list<const char*> agents,
                                         const std::string& prompt) {
  config::configuration c;
  c.node_settings.max_concurrent = 2;
  config::kernel k;
  k.when.expression = "@every 30m";
  k.cycle_deadline = 20min;
  for (const char* id : agents) {
    config::agent a;
    a.agent_id = id;
    a.prompt = prompt;
    config::command_executor run;
    run.argv = {"agent"};
    a.run = run;
    a.timeout = 5min;
    k.agents.push_back(a);
  }
  c.kernels.push_back(k);
  return c;
}

/// One line each.
inline std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& l : lines)
    all += l + "\n";
  return all;
}

/// No log in this scope: a day's log of every seed would bury what a failing test says.
class quiet {
 public:
  quiet() : before_(spdlog::get_level()) { spdlog::set_level(spdlog::level::off); }
  ~quiet() { spdlog::set_level(before_); }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;

 private:
  spdlog::level::level_enum before_;
};

} // namespace boyd::sim
