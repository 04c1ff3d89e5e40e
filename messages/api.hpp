#pragma once

#include "messages/message.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace boyd {

/// Who asks, where it matters: somebody decides in a person's place.
struct api_caller {
  std::string name;   ///< for the record
  std::string barred; ///< why this one is no person who may decide; empty: it may
};

/// A request of the control API, from the socket or from a command without a node.
struct api_request : message {
  std::string method;
  std::string path;                         ///< decoded, without the query
  std::map<std::string, std::string> query; ///< decoded
  std::string body;
  std::optional<api_caller> caller{}; ///< of a request that decides for people; nothing: not known
  /// Becomes true when the client has left. Null: it waits to the end.
  std::shared_ptr<const std::atomic<bool>> gone{};
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
