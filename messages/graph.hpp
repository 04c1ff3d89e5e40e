#pragma once

#include "boyd/core/time.hpp"
#include "messages/message.hpp"

#include <string>
#include <vector>

namespace boyd {

/// One fact for the knowledge graph (SPEC §15).
struct graph_fact {
  std::string from;
  std::string to;
  std::string type;
  utc_time at{};
  std::string meta_json = "{}";
};

/// Appends facts; acknowledged when they are durable.
struct graph_request : message {
  std::vector<graph_fact> facts;
  request_end until = request_end::max();
};

/// The hash of the last line: anchored in the cycle's commit trailer.
struct graph_reply {
  std::string head;
};

} // namespace boyd
