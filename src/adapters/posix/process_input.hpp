#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// How many bytes wait for each stdin that stays open. Threads: any.
class waiting_input {
 public:
  void open(process_handle handle, std::size_t bytes);
  /// Errors as of process_runner::write.
  result<void> add(process_handle handle, std::size_t bytes);
  /// So many are written, or never will be.
  void taken(process_handle handle, std::size_t bytes);
  /// False: it was not open.
  bool close(process_handle handle);

 private:
  std::mutex mutex_;
  std::map<process_handle, std::size_t> waiting_;
};

/// What is to be written to one stdin. Used by the runner's thread alone.
struct job_input {
  std::string bytes;
  std::size_t at = 0;
  bool stays = false;  ///< open until told otherwise
  bool watched = true; ///< epoll tells when it takes more

  enum class state { waits, idle, over };

  void add(std::string_view more);
  /// Writes what fits; adds to `written`. `over`: all is written and it does not stay, or nobody
  /// reads it.
  state write_to(int fd, std::size_t& written);
};

} // namespace boyd::adapters
