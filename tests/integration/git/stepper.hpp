#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace boyd::test {

/// A system call that changes files, about to be made by a stepped child.
struct disk_step {
  int number = 0;         ///< from 0
  bool sync = false;      ///< fsync or fdatasync
  bool directory = false; ///< of a directory
};

enum class step_choice : std::uint8_t {
  go,
  kill,   ///< SIGKILL before the call is made
  refuse, ///< the call is not made and answers EIO
  full,   ///< the call is not made and answers ENOSPC
};

struct stepped {
  bool possible = true; ///< false: tracing is not permitted here
  bool killed = false;
  int exit_code = -1;
  int steps = 0; ///< file-changing calls seen
};

/// Runs `child` in a forked process under ptrace, asking `choose` before each of its calls that
/// change files (open for writing, write, rename, link, unlink, mkdir, fsync, …). `child` runs in
/// the forked process and its value is the exit code. It gets no threads and no queue of requests
/// of the kernel's (libaio).
stepped run_stepped(const std::function<int()>& child,
                    const std::function<step_choice(const disk_step&)>& choose);

} // namespace boyd::test
