#include "left_runs.hpp"

#include "proc_fs.hpp"
#include "process_wire.hpp"

#include <csignal>
#include <set>
#include <unistd.h>

namespace boyd::adapters {

namespace {

/// They may fork while they are looked for.
constexpr int passes = 16;

} // namespace

std::size_t end_left_runs(const std::string& home) {
  std::set<pid_t> ended;
  for (int pass = 0; pass < passes; ++pass) {
    const auto before = ended.size();
    for (const pid_t pid : all_processes()) {
      if (pid == ::getpid() || environment_value(pid, wire::run_variable).empty() ||
          environment_value(pid, "BOYD_HOME") != home)
        continue;
      if (::kill(pid, SIGKILL) == 0)
        ended.insert(pid);
    }
    if (ended.size() == before)
      break;
  }
  return ended.size();
}

} // namespace boyd::adapters
