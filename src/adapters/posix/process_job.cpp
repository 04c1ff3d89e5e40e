#include "process_job.hpp"

#include "process_child.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>

namespace boyd::adapters {

namespace {

bool holds_nul(const process_spec& spec) {
  const auto bad = [](const std::string& s) { return s.find('\0') != std::string::npos; };
  if (spec.sandbox) {
    const auto& s = *spec.sandbox;
    if (bad(s.scratch) || bad(s.bubblewrap) || std::ranges::any_of(s.writable, bad) ||
        std::ranges::any_of(s.readable, bad) || std::ranges::any_of(s.hidden, bad) ||
        std::ranges::any_of(s.read_only, bad))
      return true;
  }
  return bad(spec.cwd) || bad(spec.cwd_within) ||
         std::any_of(spec.argv.begin(), spec.argv.end(), bad) ||
         std::any_of(spec.environment.begin(), spec.environment.end(),
                     [&](const auto& v) { return bad(v.first) || bad(v.second); });
}

std::string describe_failure(const process_job& e, const wire::reply& r) {
  const std::string why = ": " + errno_text(r.error_number);
  switch (r.step) {
  case wire::spawn_step::receive:
    return "cannot start " + e.program + why;
  case wire::spawn_step::fork:
    return "cannot fork for " + e.program + why;
  case wire::spawn_step::descriptors:
    return "cannot create pipes for " + e.program + why;
  case wire::spawn_step::limits:
    return "cannot set limits for " + e.program + why;
  case wire::spawn_step::directory:
    return "cannot change to directory " + e.directory + why +
           (r.error_number == EXDEV ? " (a link leads out of the workspace)" : "");
  case wire::spawn_step::sandbox:
    return "cannot set up the sandbox for " + e.program + why;
  case wire::spawn_step::exec:
    return "cannot execute " + e.program + why;
  case wire::spawn_step::bubblewrap:
    return "bubblewrap did not start " + e.program;
  }
  return "cannot start " + e.program + why;
}

} // namespace

std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

bool is_startable(const process_spec& spec) {
  return !spec.argv.empty() && !spec.argv.front().empty() && spec.cwd.starts_with('/') &&
         !holds_nul(spec);
}

process_exit exit_of(const process_job& e, const wire::reply& r) {
  process_exit x;
  if (r.kind == wire::reply::kind_t::failed) {
    x.started = false;
    x.start_errno = r.error_number;
    // Behind its limits (all steps from there on) a shortage is its own, but for the whole
    // system's.
    x.own_limits = e.limited && r.step >= wire::spawn_step::limits && r.error_number != ENFILE;
    x.start_error = describe_failure(e, r);
    return x;
  }
  if (WIFSIGNALED(r.wait_status))
    x.signal = WTERMSIG(r.wait_status);
  else
    x.exit_code = WEXITSTATUS(r.wait_status);
  x.wall = milliseconds{r.wall_ms};
  x.user = milliseconds{r.user_ms};
  x.system = milliseconds{r.system_ms};
  x.max_rss_kb = r.max_rss_kb;
  x.host_lost = e.host_lost;
  return x;
}

/// A memfd with the payload; -1 and errno when it cannot be made.
unique_fd make_payload(const process_spec& spec, const std::string& mark) {
  child_plan plan;
  plan.limits.max_open_files = spec.max_open_files;
  plan.limits.max_processes = spec.max_processes;
  if (spec.umask)
    plan.limits.umask = static_cast<std::int32_t>(*spec.umask & 0777U);
  plan.directory = spec.cwd;
  plan.within = spec.cwd_within;
  if (spec.sandbox)
    plan.sandbox = *spec.sandbox;
  plan.arguments = spec.argv;
  for (const auto& [name, value] : spec.environment)
    if (name != wire::run_variable) // this node may itself be a run of another one
      plan.environment.push_back(name + '=' + value);
  plan.environment.push_back(std::string(wire::run_variable) + '=' + mark);
  const std::string payload = encode_plan(plan);
  unique_fd fd(::memfd_create("boyd-spawn", MFD_CLOEXEC));
  std::size_t at = 0;
  while (fd && at < payload.size()) {
    const auto n = ::write(fd.get(), payload.data() + at, payload.size() - at);
    if (n <= 0)
      return unique_fd{};
    at += static_cast<std::size_t>(n);
  }
  return fd;
}

} // namespace boyd::adapters
