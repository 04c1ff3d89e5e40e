#pragma once

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace boyd::bench {

/// An endpoint of models in a process of its own, so that this one's memory is the caller's alone.
/// Its answers wait until it is told. Make it before other threads exist.
class slow_endpoint {
 public:
  /// For so many calls, each answered with a stream of so many events.
  slow_endpoint(std::size_t calls, std::size_t events);
  ~slow_endpoint();
  slow_endpoint(const slow_endpoint&) = delete;
  slow_endpoint& operator=(const slow_endpoint&) = delete;

  const std::string& origin() const { return origin_; }
  /// Until all calls are there; false when they do not come.
  bool wait_for_all() const { return line() == "all"; }
  /// All answers go out.
  void answer() const;

 private:
  std::string line() const;

  int orders_ = -1;
  int answers_ = -1;
  pid_t child_ = -1;
  std::string origin_;
};

/// As many descriptors as the system gives; how many those are.
std::size_t raise_descriptor_limit();

} // namespace boyd::bench
