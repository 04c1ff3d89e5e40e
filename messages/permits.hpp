#pragma once

#include "messages/message.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// What a dispatcher would run at once if it might; replaces its earlier wish. 0 withdraws it.
struct permit_wish : message {
  std::string kernel_id;
  std::string holder; ///< dispatcher's name, for status
  int count = 0;
  int priority = 0; ///< of its best pending dispatch
};

/// The broker grants permits; each is a lease that ends with the holder.
struct permit_grant : message {
  int count = 0;
};

/// The node before this one ended by a fault of its own while these runs were under way, and they
/// run again: one by one at first, so that a run which ends its node does so alone.
struct permit_pacing : message {
  int runs = 0;
};

/// New limits after a reload.
struct permit_limits : message {
  int node = 0;
  std::vector<std::pair<std::string, int>> kernels; ///< 0: only the node's limit
  std::shared_ptr<const void> heard{};              ///< as reload_order's
};

struct permits_query : message {};

struct permits_status : message {
  int limit = 0;
  int in_use = 0;
  int peak = 0; ///< the most ever in use at once
  std::vector<std::pair<std::string, int>> holders;
};

} // namespace boyd
