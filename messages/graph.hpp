#pragma once

#include "boyd/graph/edge_log.hpp"
#include "messages/message.hpp"

#include <string>
#include <vector>

namespace boyd {

/// Appends facts; acknowledged when they are durable.
struct graph_request : message {
  std::vector<graph::edge> facts;
  request_end until = request_end::max();
};

/// The hash of the last line: anchored in the cycle's commit trailer.
struct graph_reply {
  std::string head;
};

} // namespace boyd
