#include "sandbox_kernel.hpp"

#include <cerrno>
#include <cstddef>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace boyd::adapters {

namespace landlock {

namespace {

// The same on every architecture.
constexpr long call_create = 444;
constexpr long call_add = 445;
constexpr long call_restrict = 446;
constexpr unsigned ask_version = 1;
constexpr int rule_of_path = 1;
constexpr int rule_of_port = 2;

struct [[gnu::packed]] path_rule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

struct port_rule {
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

constexpr int newest_rights_abi = 5;

} // namespace

int abi() {
  const long found = ::syscall(call_create, nullptr, 0, ask_version);
  return found < 0 ? 0 : static_cast<int>(found);
}

rights rights_of(int abi) {
  constexpr int first_bits = 12;
  int highest = first_bits;
  if (abi >= 2)
    ++highest; // refer
  if (abi >= abi_of_truncate)
    ++highest;
  if (abi >= newest_rights_abi)
    ++highest; // ioctl_device
  return (rights{1} << (highest + 1)) - 1;
}

int create(const ruleset_attributes& attributes, int abi) {
  // A kernel refuses bytes that it does not know.
  const std::size_t size = abi >= abi_of_scopes  ? sizeof attributes
                           : abi >= abi_of_ports ? offsetof(ruleset_attributes, scoped)
                                                 : offsetof(ruleset_attributes, handled_network);
  return static_cast<int>(::syscall(call_create, &attributes, size, 0));
}

int allow(int rules, int path, rights what) {
  const path_rule rule{what, path};
  return static_cast<int>(::syscall(call_add, rules, rule_of_path, &rule, 0));
}

int allow_port(int rules, std::uint16_t port) {
  const port_rule rule{connect_tcp, port};
  return static_cast<int>(::syscall(call_add, rules, rule_of_port, &rule, 0));
}

int restrict_self(int rules) {
  return static_cast<int>(::syscall(call_restrict, rules, 0));
}

} // namespace landlock

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr std::uint32_t own_architecture = AUDIT_ARCH_RISCV64;
#else
constexpr std::uint32_t own_architecture = 0; // no filter: socket() may be one of several calls
#endif

/// Of x86-64: the same calls for programs with short pointers.
constexpr std::uint32_t other_numbering = 0x40000000;
constexpr std::uint32_t io_uring_setup = 425;
constexpr std::uint32_t io_uring_register = 427;
constexpr std::uint32_t pidfd_send_signal = 424;
constexpr std::uint32_t pidfd_getfd = 438;
constexpr std::uint32_t process_madvise = 440;
constexpr std::uint32_t process_mrelease = 448;

/// Calls on a process that is named by its number, or on keys of the user.
constexpr std::uint32_t calls_on_others[] = {
    SYS_ptrace,      SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,    pidfd_getfd,
    process_madvise, process_mrelease,     SYS_perf_event_open,   SYS_add_key, SYS_request_key,
    SYS_keyctl};

/// Calls whose first argument is a process's number; 0 is the caller itself.
constexpr std::uint32_t calls_by_number[] = {
    SYS_prlimit64,     SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_migrate_pages,     SYS_move_pages};

/// Calls on a process, a group, or all processes of a user (the greatest kind), with its number.
struct call_on_kind {
  std::uint32_t number;
  std::uint32_t of_user; ///< the first argument that names a user
};
constexpr call_on_kind calls_on_kinds[] = {{SYS_setpriority, 2}, {SYS_ioprio_set, 3}};

constexpr std::uint32_t refused(int error_number) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error_number) & SECCOMP_RET_DATA);
}

/// A small program of jumps: each step either decides or goes on with the next.
class filter_program {
 public:
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
  }
  void decide_if(std::uint32_t value, std::uint32_t verdict) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add(BPF_RET | BPF_K, verdict, 0, 0);
  }
  void decide_unless(std::uint32_t value, std::uint32_t verdict) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    add(BPF_RET | BPF_K, verdict, 0, 0);
  }
  void decide_from(std::uint32_t least, std::uint32_t verdict) {
    add(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1);
    add(BPF_RET | BPF_K, verdict, 0, 0);
  }
  /// The `length` steps that follow are passed over unless the value is this one.
  void skip_unless(std::uint32_t value, std::uint8_t length) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, length);
  }
  void decide(std::uint32_t verdict) { add(BPF_RET | BPF_K, verdict, 0, 0); }

  int install() {
    sock_fprog program{static_cast<unsigned short>(steps_.size()), steps_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : errno;
  }

 private:
  void add(std::uint32_t code, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    steps_.push_back({static_cast<std::uint16_t>(code), yes, no, k});
  }

  std::vector<sock_filter> steps_;
};

/// The lower half of an argument: the calls that are looked at take ints.
constexpr std::size_t argument(std::size_t index) {
  return offsetof(seccomp_data, args) + index * sizeof(std::uint64_t);
}

/// Expects the call's number to be loaded, and leaves it so for all other calls.
void refuse_others(filter_program& program, bool signals) {
  constexpr std::uint32_t no = refused(EPERM);
  for (const auto number : calls_on_others)
    program.decide_if(number, no);
  for (const auto number : calls_by_number) {
    program.skip_unless(number, 4);
    program.load(argument(0));
    program.decide_unless(0, no);
    program.decide(SECCOMP_RET_ALLOW);
  }
  for (const auto& [number, of_user] : calls_on_kinds) {
    program.skip_unless(number, 7);
    program.load(argument(0));
    program.decide_from(of_user, no);
    program.load(argument(1));
    program.decide_unless(0, no);
    program.decide(SECCOMP_RET_ALLOW);
  }
  if (!signals)
    return;
  // Whose a process is cannot be seen here: all at once can be refused.
  program.decide_if(pidfd_send_signal, refused(ENOSYS));
  program.skip_unless(SYS_kill, 4);
  program.load(argument(0));
  program.decide_if(static_cast<std::uint32_t>(-1), no);
  program.decide(SECCOMP_RET_ALLOW);
}

} // namespace

bool can_filter_calls() {
  const std::uint32_t wanted = SECCOMP_RET_ERRNO;
  return own_architecture != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &wanted) == 0;
}

int filter_calls(const call_filter& filter) {
  if (!can_filter_calls())
    return 0; // whoever planned it knows, and says so
  filter_program program;
  program.load(offsetof(seccomp_data, arch));
  program.decide_unless(own_architecture, refused(ENOSYS));
  program.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  program.decide_from(other_numbering, refused(ENOSYS));
#endif
  for (auto number = io_uring_setup; number <= io_uring_register; ++number)
    program.decide_if(number, refused(EPERM));
  if (filter.no_other_processes)
    refuse_others(program, filter.no_signals);
  program.decide_unless(SYS_socket, SECCOMP_RET_ALLOW);
  // The family is an int: the upper half of the register says nothing.
  program.load(offsetof(seccomp_data, args));
  if (filter.no_network)
    program.decide_unless(AF_NETLINK, refused(EACCES));
  if (filter.no_local_sockets)
    program.decide_if(AF_UNIX, refused(EACCES));
  program.decide(SECCOMP_RET_ALLOW);
  return program.install();
}

} // namespace boyd::adapters
