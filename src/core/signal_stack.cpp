#include "boyd/core/signal_stack.hpp"

#include <csignal>
#include <cstddef>
#include <sys/mman.h>

namespace boyd {

namespace {

/// More than the largest registers that the kernel saves, and what a handler needs; only what is
/// touched takes memory.
constexpr std::size_t stack_bytes = std::size_t{64} << 10;

class signal_stack {
 public:
  signal_stack() {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0)
      return;
    void* memory = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return;
    memory_ = memory;
    stack_t own{};
    own.ss_sp = memory_;
    own.ss_size = stack_bytes;
    ::sigaltstack(&own, nullptr);
  }

  ~signal_stack() {
    if (memory_ == nullptr)
      return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory_, stack_bytes);
  }

  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

 private:
  void* memory_ = nullptr;
};

} // namespace

void give_signal_stack() {
  static thread_local signal_stack of_this_thread;
  static_cast<void>(of_this_thread);
}

} // namespace boyd
