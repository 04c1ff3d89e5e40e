#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/core/result.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace boyd::bench {

/// The whole tree of a node, with one kernel "bench" and agents whose scripts do nothing. Use from
/// one thread.
class whole_node {
 public:
  /// Finished rows older than `keep_rows` are removed; below 0: as configured.
  explicit whole_node(node_context_ptr context, std::size_t agents = 1,
                      milliseconds keep_rows = milliseconds{-1});
  /// Shuts the node down in order.
  ~whole_node();
  whole_node(const whole_node&) = delete;
  whole_node& operator=(const whole_node&) = delete;

  /// One cycle, as `boyd cycle` asks for it; returns when it is recorded and committed. An error
  /// when it is not admitted or an agent fails.
  result<void> cycle();

  /// Actors that live.
  std::size_t actors() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The kernel of `whole_node`.
inline constexpr auto bench_kernel = "bench";

} // namespace boyd::bench
