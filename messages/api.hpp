#pragma once

#include "messages/message.hpp"

#include <functional>
#include <map>
#include <string>

namespace boyd {

/// A request of the control API, from the socket or from a command without a node.
struct api_request : message {
  std::string method;
  std::string path;                         ///< decoded, without the query
  std::map<std::string, std::string> query; ///< decoded
  std::string body;
};

struct api_response : message {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string allow; ///< with status 405: the methods that the path takes, as in "GET, POST"
};

/// Sends every cycle_event as one JSON line to `sink` until it returns false. Called from an
/// actor's thread; must not block.
struct watch_events : message {
  std::function<bool(const std::string& json_line)> sink;
};

} // namespace boyd
