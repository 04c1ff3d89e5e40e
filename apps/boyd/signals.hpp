#pragma once

#include "adapters/unique_fd.hpp"
#include "boyd/core/time.hpp"

namespace boyd::app {

/// SIGINT, SIGTERM and SIGHUP as a descriptor: blocked in every thread that is started after it was
/// made (children get an empty mask from the process host). No handler ever runs. One per process.
class signal_watch {
 public:
  signal_watch();

  /// Readable when a signal is pending.
  int descriptor() const noexcept { return fd_.get(); }

  /// The next pending signal; 0: none.
  int take();

  /// True when SIGINT or SIGTERM has come: takes what is pending and remembers.
  bool interrupted();

  /// Waits so long, less when a signal comes; false when the command is interrupted.
  bool pause(milliseconds moment);

 private:
  adapters::unique_fd fd_;
  bool interrupted_ = false;
};

/// Ends the process as a program that does not ignore SIGPIPE ends when its reader is gone.
void end_by_broken_pipe();

/// umask 077, SIGPIPE ignored: before anything else.
void prepare_process();

/// The umask that this process was started with.
unsigned user_umask();

} // namespace boyd::app
