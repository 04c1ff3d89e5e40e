#pragma once

#include <cstddef>
#include <memory>

namespace boyd::test {

/// A TCP proxy on loopback between nodes and their database: the network that a test can break.
/// One thread of its own. Methods: any thread.
class tcp_proxy {
 public:
  /// Listens on a free port and leads to 127.0.0.1:`target_port`.
  explicit tcp_proxy(int target_port);
  ~tcp_proxy();
  tcp_proxy(const tcp_proxy&) = delete;
  tcp_proxy& operator=(const tcp_proxy&) = delete;

  int port() const;

  /// Everything goes through; what a stall has held goes on.
  void pass();
  /// Nothing is read, accepted or forwarded; nobody is told (a switch that lost its tables).
  void stall();
  /// Every connection is closed, new ones at once.
  void cut();
  /// Every connection is closed once; new ones go through.
  void drop();
  /// The next COMMIT of any client is cut: the server gets it and its answer is lost (`forwarded`),
  /// or the connection ends just before it.
  void cut_at_commit(bool forwarded);

  /// From now on nothing reaches a client that has said LISTEN; its connection stays.
  void mute_listeners();
  /// Listeners that have been muted.
  std::size_t muted() const;

  /// Commits that were cut so far.
  std::size_t commits_cut() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace boyd::test
