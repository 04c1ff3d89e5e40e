#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace boyd::adapters {

/// The process at the other end of a connection.
struct http_peer {
  std::string name;   ///< for people
  std::string barred; ///< why it may not speak for a person; empty: it may
};

/// One request of the control API, already checked and decoded.
struct http_request {
  std::string method; ///< "GET", "POST", …; as sent, case matters
  /// Percent-decoded, begins with '/', valid UTF-8, free of control characters and of "." and ".."
  /// segments. Without the query.
  std::string path;
  /// Decoded; '+' is a space. A key without '=' has an empty value; no key comes twice.
  std::map<std::string, std::string> query;
  std::string body; ///< at most limits::http_body_bytes, any bytes
  /// Who has connected, as it was looked at then; null: nobody looked.
  std::shared_ptr<const http_peer> peer{};
  /// Becomes true when the client has left: nobody will read the answer. Null: nobody watches.
  /// Threads: any.
  std::shared_ptr<const std::atomic<bool>> gone{};
};

/// The answer to one request.
struct http_response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string allow{}; ///< the Allow header's value; empty: none is sent
  int retry_after = 0; ///< the Retry-After header's value, seconds; 0: none is sent
};

} // namespace boyd::adapters
