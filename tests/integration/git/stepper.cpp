#include "integration/git/stepper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::test {

#if defined(__x86_64__)

namespace {

constexpr unsigned long long no_such_call = ~0ull;
constexpr int cannot_trace = 77;

bool changes_files(const user_regs_struct& regs) {
  static const std::array calls{SYS_write,   SYS_pwrite64, SYS_rename, SYS_renameat,  SYS_renameat2,
                                SYS_link,    SYS_linkat,   SYS_unlink, SYS_unlinkat,  SYS_mkdir,
                                SYS_mkdirat, SYS_fsync,    SYS_chmod,  SYS_fdatasync, SYS_ftruncate,
                                SYS_fchmod,  SYS_rmdir};
  const auto call = static_cast<long>(regs.orig_rax);
  if (call == SYS_openat)
    return (regs.rdx & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
  if (call == SYS_open)
    return (regs.rsi & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

/// What a child does not get, so that it does everything in one order and each call is seen:
/// threads, and the kernel's queue of requests, whose fsyncs are no calls of their own. The program
/// has to do without. 0: it is something else.
int refusal(long call) {
  switch (call) {
  case SYS_clone:
  case SYS_clone3:
  case SYS_io_setup:
  case SYS_io_submit:
    return EAGAIN;
  default:
    return 0;
  }
}

[[noreturn]] void be_traced(const std::function<int()>& child) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
    ::_exit(cannot_trace);
  ::raise(SIGSTOP);
  ::_exit(child());
}

void finish(pid_t pid, int status, stepped& out) {
  out.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (WIFEXITED(status)) {
    out.exit_code = WEXITSTATUS(status);
    out.possible = out.exit_code != cannot_trace;
  }
  (void)pid;
}

/// The next stop; true when it is a system call's entry or exit.
bool next_stop(pid_t pid, int& status) {
  ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
  while (::waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
    if (WSTOPSIG(status) == (SIGTRAP | 0x80))
      return true;
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, WSTOPSIG(status));
  }
  return false;
}

disk_step step_of(int number, pid_t pid, const user_regs_struct& regs) {
  const auto call = static_cast<long>(regs.orig_rax);
  disk_step step{number, call == SYS_fsync || call == SYS_fdatasync, false};
  std::error_code failed;
  if (step.sync)
    step.directory = std::filesystem::is_directory(
        "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(regs.rdi), failed);
  return step;
}

} // namespace

stepped run_stepped(const std::function<int()>& child,
                    const std::function<step_choice(const disk_step&)>& choose) {
  stepped out;
  const pid_t pid = ::fork();
  if (pid == 0)
    be_traced(child);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
    finish(pid, status, out);
    return out;
  }
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  while (next_stop(pid, status)) {
    user_regs_struct regs{};
    ::ptrace(PTRACE_GETREGS, pid, nullptr, &regs);
    const long call = static_cast<long>(regs.orig_rax);
    step_choice choice = step_choice::go;
    int answer = refusal(call);
    if (answer == 0 && changes_files(regs))
      choice = choose(step_of(out.steps++, pid, regs));
    if (choice == step_choice::kill) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      break;
    }
    if (choice != step_choice::go)
      answer = choice == step_choice::full ? ENOSPC : EIO;
    if (answer != 0) {
      regs.orig_rax = no_such_call;
      ::ptrace(PTRACE_SETREGS, pid, nullptr, &regs);
    }
    if (!next_stop(pid, status))
      break;
    if (answer != 0) {
      ::ptrace(PTRACE_GETREGS, pid, nullptr, &regs);
      regs.rax = static_cast<unsigned long long>(-answer);
      ::ptrace(PTRACE_SETREGS, pid, nullptr, &regs);
    }
  }
  finish(pid, status, out);
  return out;
}

#else

stepped run_stepped(const std::function<int()>&,
                    const std::function<step_choice(const disk_step&)>&) {
  stepped out;
  out.possible = false;
  return out;
}

#endif

} // namespace boyd::test
