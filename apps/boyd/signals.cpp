#include "signals.hpp"

#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::app {

namespace {

constexpr mode_t private_files = 077;
mode_t inherited_umask = private_files;

} // namespace

signal_watch::signal_watch() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int s : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&watched, s);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  fd_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

int signal_watch::take() {
  struct ::signalfd_siginfo info {};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return 0;
  return static_cast<int>(info.ssi_signo);
}

bool signal_watch::interrupted() {
  for (int s = take(); s != 0; s = take())
    interrupted_ = interrupted_ || s == SIGINT || s == SIGTERM;
  return interrupted_;
}

bool signal_watch::pause(milliseconds moment) {
  struct ::pollfd wait {
    descriptor(), POLLIN, 0
  };
  ::poll(&wait, 1, static_cast<int>(moment.count()));
  return !interrupted();
}

void end_by_broken_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

void prepare_process() {
  inherited_umask = ::umask(private_files);
  std::signal(SIGPIPE, SIG_IGN);
}

unsigned user_umask() {
  return inherited_umask;
}

} // namespace boyd::app
