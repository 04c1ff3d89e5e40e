#pragma once

#include <csignal>

namespace boyd::adapters {

/// A thread that starts inside this scope takes no signals: they are for the node's own threads,
/// and SIGPIPE is an errno.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

} // namespace boyd::adapters
