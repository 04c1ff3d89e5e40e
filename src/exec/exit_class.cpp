#include "boyd/exec/exit_class.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

namespace boyd::exec {

namespace {

constexpr int code_tempfail = 75;
constexpr int code_config = 78;
constexpr int code_timeout = 124;
constexpr int code_not_executable = 126;
constexpr int code_not_found = 127;
/// A shell's exit code for a program that a signal ended.
constexpr int code_signal_base = 128;

failure_class classify_start(int error_number) {
  switch (error_number) {
  case 0: // the runner itself refused: it is stopping or overloaded
  case EAGAIN:
  case EMFILE:
  case ENFILE:
  case ENOMEM:
  case ETXTBSY:
  case EINTR:
  case ETOOMANYREFS:
    return failure_class::transient;
  case E2BIG:
  case EINVAL:
    return failure_class::deterministic;
  default:
    return failure_class::environment;
  }
}

failure_class classify_signal(int signal) {
  switch (signal) {
  case SIGHUP:
  case SIGINT:
  case SIGQUIT:
  case SIGKILL:
  case SIGTERM:
    return failure_class::transient;
  default:
    return failure_class::deterministic;
  }
}

failure_class classify_code(int code) {
  switch (code) {
  case 0:
    return failure_class::none;
  case code_tempfail:
  case code_timeout:
  case code_signal_base + SIGHUP:
  case code_signal_base + SIGINT:
  case code_signal_base + SIGKILL:
  case code_signal_base + SIGTERM:
    return failure_class::transient;
  case code_config:
  case code_not_executable:
  case code_not_found:
    return failure_class::environment;
  default:
    return failure_class::deterministic;
  }
}

} // namespace

failure_class classify_exit(const process_exit& e, const std::map<int, std::string>& exit_classes) {
  if (!e.started)
    return classify_start(e.start_errno);
  if (e.signal != 0)
    return classify_signal(e.signal);
  if (const auto found = exit_classes.find(e.exit_code); found != exit_classes.end())
    if (const auto named = failure_class_from(found->second))
      return *named;
  return classify_code(e.exit_code);
}

bool is_shortage(const process_exit& e) noexcept {
  return !e.started && !e.own_limits &&
         (e.start_errno == EAGAIN || e.start_errno == EMFILE || e.start_errno == ENFILE ||
          e.start_errno == ENOMEM);
}

std::string describe_exit(const process_exit& e) {
  if (!e.started)
    return e.start_error;
  if (e.signal != 0) {
    const char* const text = ::sigdescr_np(e.signal);
    return "killed by signal " + std::to_string(e.signal) + " (" +
           (text != nullptr ? text : "unknown") + ")";
  }
  return "exit code " + std::to_string(e.exit_code);
}

} // namespace boyd::exec
