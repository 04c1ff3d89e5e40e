#pragma once

#include "../unique_fd.hpp"
#include "boyd/core/result.hpp"
#include "process_runner.hpp"
#include "process_wire.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

namespace boyd::adapters {

/// A request with the descriptors that travel with it.
struct outgoing {
  wire::request request;
  std::array<unique_fd, wire::spawn_descriptors> descriptors; ///< of a spawn only
};

/// The node's end of the process host: starts it, talks to it without blocking, ends it. Used by
/// the runner's thread alone (after construction).
class host_link {
 public:
  /// `lock` is not owned by the caller any more.
  host_link(const process_runner_options& options, unique_fd lock);
  ~host_link();
  host_link(const host_link&) = delete;
  host_link& operator=(const host_link&) = delete;

  /// Starts a host; the earlier one must be lost.
  result<void> start();

  bool alive() const noexcept { return static_cast<bool>(control_); }
  int control() const noexcept { return control_.get(); }
  /// What the values of BOYD_RUN begin with; unique to this link.
  const std::string& nonce() const noexcept { return nonce_; }

  /// 0, or errno: EAGAIN (full: wait for EPOLLOUT), EPIPE and the like: the host is gone.
  int send(const outgoing& message);

  /// Pings the host when it is time to; `busy`: somebody waits for what it does. How many pings it
  /// owes an answer to; one that owes too many is ended, and `receive` says closed. Pings are
  /// counted, not time: a process that was stopped with its host does not take it for stuck.
  int look(std::chrono::steady_clock::time_point now, bool busy);
  /// When to look again.
  std::chrono::steady_clock::time_point next_look(bool busy) const {
    return looked_at_ + (busy || owed_ > 0 ? ping_ : ping_ * idle_factor);
  }

  enum class received { nothing, reply, closed };
  received receive(wire::reply& into);

  /// The host died: reaps it and ends what it left behind, as far as the mark finds it.
  void lost();

  /// Lets the host end everything and exit; ends it when that takes too long.
  void stop();

 private:
  static constexpr int idle_factor = 6;

  bool reap(milliseconds limit);
  void sweep() const;

  std::string executable_;
  std::string open_files_; ///< of children, a number
  unique_fd lock_;
  std::string nonce_;
  unique_fd control_;
  pid_t host_ = -1;
  milliseconds ping_;
  std::chrono::steady_clock::time_point looked_at_{};
  int owed_ = 0;
  bool lost_ = false; ///< what the last host left behind is looked for once more
};

} // namespace boyd::adapters
