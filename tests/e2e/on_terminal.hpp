#pragma once

#include "program.hpp"
#include "support/pch.hpp"

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <map>
#include <poll.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace boyd::test {

inline constexpr unsigned short columns = 80;
inline constexpr unsigned short rows = 24;

/// The binary, or another program, on a terminal of its own.
class on_terminal {
 public:
  explicit on_terminal(std::vector<std::string> args,
                       const std::map<std::string, std::string>& environment = {},
                       const std::string& program = boyd_binary()) {
    args.insert(args.begin(), program);
    ::winsize size{rows, columns, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    REQUIRE(pid_ >= 0);
    if (pid_ != 0)
      return;
    std::vector<char*> argv;
    for (auto& a : args)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    ::setenv("TERM", "xterm", 1);
    ::setenv("TZ", "America/Argentina/Buenos_Aires", 1);
    ::unsetenv("COLUMNS");
    for (const auto& [name, value] : environment)
      ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~on_terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }
  on_terminal(const on_terminal&) = delete;
  on_terminal& operator=(const on_terminal&) = delete;

  /// Reads until the new output has `text`; false when it ends without.
  bool wait_for(const std::string& text) {
    const auto from = seen_;
    while (text_.find(text, from) == std::string::npos)
      if (!read_some())
        return false;
    seen_ = text_.find(text, from) + text.size();
    return true;
  }

  void type(const std::string& keys) const {
    REQUIRE(::write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  /// Reads to the end; the exit code.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& text() const { return text_; }

 private:
  bool read_some() {
    constexpr int patience_ms = 60'000;
    ::pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, patience_ms) != 1)
      return false;
    char part[4096];
    const auto n = ::read(fd_, part, sizeof part);
    if (n <= 0)
      return false;
    text_.append(part, static_cast<std::size_t>(n));
    return true;
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string text_;
  std::size_t seen_ = 0;
};

/// What is shown of a line: without escape sequences, in characters.
inline std::size_t width_of(const std::string& line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0)
        ++i;
      continue;
    }
    width += (static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U && line[i] != '\r' ? 1U : 0U;
  }
  return width;
}

} // namespace boyd::test
